#include "backends/cuda/kernels/convolution_gemm.h"

namespace cputrain::cuda {

void convolution_forward(Stream stream, const ConvolutionCall& call, const float* src,
                         const float* weights, const float* bias, float* dst) {
  const WindowShape& shape = call.shape;
  const std::size_t size = static_cast<std::size_t>(shape.images) * shape.dst.size();
  multiply<Exact>(stream, "convolution_forward", ForwardProblem<float>{shape, src, weights},
                  forward_extent(shape), call.plan.forward, call.workspace,
                  {dst, bias, false, size});
}

}  // namespace cputrain::cuda
