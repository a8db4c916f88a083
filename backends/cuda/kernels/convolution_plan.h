#pragma once

#include "backends/cuda/kernels/gemm_plan.h"
#include "backends/cuda/kernels/shapes.h"

/// How the matrix products of a convolution are cut: fixed by its size and the device.
namespace cputrain::cuda {

/// rows: windows; columns: channels of dst; depth: taps.
constexpr GemmExtent forward_extent(const WindowShape& s) {
  return {static_cast<std::size_t>(s.windows()), static_cast<std::size_t>(s.dst.channels),
          static_cast<std::size_t>(s.taps())};
}

/// rows: positions of src; columns: channels of src; depth: taps by channels of dst. A part for
/// each class of positions (convolution_geometry.h); rows and depth are the largest class's.
constexpr GemmExtent data_extent(const WindowShape& s) {
  const auto stride = static_cast<std::size_t>(s.stride);
  const std::size_t rows = static_cast<std::size_t>(s.images) *
                           pieces(static_cast<std::size_t>(s.src.height), stride) *
                           pieces(static_cast<std::size_t>(s.src.width), stride);
  const std::size_t taps = pieces(static_cast<std::size_t>(s.size), stride);
  return {rows, static_cast<std::size_t>(s.src.channels),
          taps * taps * static_cast<std::size_t>(s.dst.channels), s.stride * s.stride};
}

/// rows: channels of dst; columns: taps; depth: windows.
constexpr GemmExtent weights_extent(const WindowShape& s) {
  return {static_cast<std::size_t>(s.dst.channels), static_cast<std::size_t>(s.taps()),
          static_cast<std::size_t>(s.windows())};
}

/// Parts of a column of so many numbers (of the bias' gradient) that are summed each by itself.
constexpr int parts_of_column(std::size_t rows) {
  constexpr std::size_t kRowsOfPart = 256, kMostParts = 256;
  const std::size_t parts = rows / kRowsOfPart;
  return static_cast<int>(parts < 1 ? 1 : parts < kMostParts ? parts : kMostParts);
}

struct ConvolutionPlan {
  GemmPlan forward, data, weights;
  int bias_parts = 1;         ///< of the bias' gradient
  std::size_t workspace = 0;  ///< bytes that the largest of them needs
};
/// For a device of so many multiprocessors.
ConvolutionPlan plan_convolution(const WindowShape&, int multiprocessors);

}  // namespace cputrain::cuda
