#include "backends/cuda/kernels/convolution_plan.h"

#include "backends/cuda/kernels/convolution.h"

namespace cputrain::cuda {

namespace {

/// Numbers of the slices of a result of so many; none where there is one slice.
std::size_t partial_sums(const GemmExtent& extent, std::size_t result, int multiprocessors) {
  const int slices = plan_gemm(extent, sizeof(float), multiprocessors).slices;
  return slices > 1 ? static_cast<std::size_t>(slices) * result : 0;
}

}  // namespace

std::size_t convolution_workspace(const WindowShape& s, int multiprocessors) {
  const auto images = static_cast<std::size_t>(s.images);
  const auto channels = static_cast<std::size_t>(s.dst.channels);
  const auto weights = channels * static_cast<std::size_t>(s.taps());
  const int parts = parts_of_column(static_cast<std::size_t>(s.windows()));
  const std::size_t sums[] = {
      partial_sums(forward_extent(s), images * s.dst.size(), multiprocessors),
      partial_sums(data_extent(s), images * s.src.size(), multiprocessors),
      partial_sums(weights_extent(s), weights, multiprocessors),
      static_cast<std::size_t>(parts) * channels};
  std::size_t most = 0;
  for (const std::size_t size : sums) most = size > most ? size : most;
  return most * sizeof(float);
}

}  // namespace cputrain::cuda
