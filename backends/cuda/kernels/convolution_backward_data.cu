#include "backends/cuda/kernels/convolution_gemm.h"

namespace cputrain::cuda {

void convolution_backward_data(Stream stream, const ConvolutionCall& call, const float* diff_dst,
                               const float* weights, float* diff_src, bool add) {
  const WindowShape& shape = call.shape;
  const std::size_t size = static_cast<std::size_t>(shape.images) * shape.src.size();
  multiply<Exact>(stream, "convolution_backward_data", DataProblem<float>{shape, diff_dst, weights},
                  data_extent(shape), call.plan.data, call.workspace,
                  {diff_src, nullptr, add, size});
}

}  // namespace cputrain::cuda
