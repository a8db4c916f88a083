#include "backends/cuda/kernels/convolution_gemm.h"

namespace cputrain::cuda {

namespace {

/// diff_bias = sums over all windows.
void backward_bias(Stream stream, const ConvolutionCall& call, const float* diff_dst,
                   float* diff_bias, bool add) {
  const auto windows = static_cast<std::size_t>(call.shape.windows());
  const int channels = call.shape.dst.channels, parts = call.plan.bias_parts;
  sum_columns(stream, diff_dst, windows, channels, parts, call.workspace);
  const GemmResult result{diff_bias, nullptr, add, static_cast<std::size_t>(channels)};
  add_slices(stream, result, call.workspace, parts, channels);
}

}  // namespace

void convolution_backward_weights(Stream stream, const ConvolutionCall& call, const float* src,
                                  const float* diff_dst, float* diff_weights, float* diff_bias,
                                  bool add) {
  const WindowShape& shape = call.shape;
  const std::size_t size =
      static_cast<std::size_t>(shape.dst.channels) * static_cast<std::size_t>(shape.taps());
  multiply<Exact>(stream, "convolution_backward_weights",
                  WeightsProblem<float>{shape, src, diff_dst}, weights_extent(shape),
                  call.plan.weights, call.workspace, {diff_weights, nullptr, add, size});
  // Of the same workspace: the stream does one behind the other.
  if (diff_bias) backward_bias(stream, call, diff_dst, diff_bias, add);
}

}  // namespace cputrain::cuda
