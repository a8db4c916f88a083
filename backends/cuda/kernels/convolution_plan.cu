#include "backends/cuda/kernels/convolution_plan.h"

namespace cputrain::cuda {

namespace {

/// Numbers of the slices of a result of so many; none where there is one slice.
std::size_t partial_sums(const GemmPlan& plan, std::size_t result) {
  return plan.slices > 1 ? static_cast<std::size_t>(plan.slices) * result : 0;
}

std::size_t numbers_of_workspace(const WindowShape& s, const ConvolutionPlan& plan) {
  const auto images = static_cast<std::size_t>(s.images);
  const auto channels = static_cast<std::size_t>(s.dst.channels);
  const std::size_t sums[] = {
      partial_sums(plan.forward, images * s.dst.size()),
      partial_sums(plan.data, images * s.src.size()),
      partial_sums(plan.weights, channels * static_cast<std::size_t>(s.taps())),
      static_cast<std::size_t>(plan.bias_parts) * channels};
  std::size_t most = 0;
  for (const std::size_t size : sums) most = size > most ? size : most;
  return most;
}

}  // namespace

ConvolutionPlan plan_convolution(const WindowShape& s, int multiprocessors) {
  const auto product = [&](const GemmExtent& extent) {
    return plan_gemm(extent, sizeof(float), multiprocessors);
  };
  ConvolutionPlan plan{product(forward_extent(s)), product(data_extent(s)),
                       product(weights_extent(s)),
                       parts_of_column(static_cast<std::size_t>(s.windows()))};
  plan.workspace = numbers_of_workspace(s, plan) * sizeof(float);
  return plan;
}

}  // namespace cputrain::cuda
