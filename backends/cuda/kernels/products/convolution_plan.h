#pragma once

#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/products/gemm_plan.h"

/// How the matrix products of a convolution are cut: fixed by its size and the device.
namespace cputrain::cuda {

/// rows: windows; columns: channels of dst; depth: taps.
constexpr GemmExtent forward_extent(const WindowShape& s) {
  return {s.windows(), s.dst.channels, s.taps()};
}

/// rows: positions of src; columns: channels of src; depth: taps by channels of dst. A part for
/// each class of positions (position_classes.h); rows and depth are the largest class's.
constexpr GemmExtent data_extent(const WindowShape& s) {
  const std::int64_t taps = pieces(s.size, s.stride);
  const std::int64_t positions = pieces(s.src.height, s.stride) * pieces(s.src.width, s.stride);
  return {s.images * positions, s.src.channels, taps * taps * s.dst.channels, s.stride * s.stride};
}

/// rows: channels of dst; columns: taps; depth: windows.
constexpr GemmExtent weights_extent(const WindowShape& s) {
  return {s.dst.channels, s.taps(), s.windows(), 1, false};
}

/// Chunks up to which copies count on the maps: windows, and the last step of a depth, reach over
/// the end. What lies there is filled with zeros and not read.
constexpr std::int64_t counted_chunks(const WindowShape& s, Numbers numbers) {
  const auto counted = [&](const MapShape& map, std::int64_t positions) {
    const std::int64_t behind = offset_of_row(s.size + 1, map.width + 1) + 256;
    return offset_of_row(positions + behind, map.channels) / (kChunkBytes / stored_bytes(numbers));
  };
  const std::int64_t of_src = counted(s.src, s.positions()), of_dst = counted(s.dst, s.windows());
  return of_src < of_dst ? of_dst : of_src;
}

/// Partial sums of the bias' gradient in a slice: warps that share rows of A sum every so many-th
/// step each.
constexpr int bias_parts(const GemmPlan& weights) {
  constexpr int kMost = 8;
  const int warps = weights.column_tiles * weights.tile.warps_across();
  return warps < kMost ? warps : kMost;
}

struct ConvolutionPlan {
  GemmPlan forward, data, weights;

  /// In the workspace lie sums of slices, before them transposed weights or behind them sums for
  /// the bias.
  constexpr std::int64_t bias_sums(const WindowShape& s) const {
    return offset_of_row(weights.slices * bias_parts(weights), s.dst.channels);
  }
  constexpr std::size_t workspace_bytes(const WindowShape& s) const {
    const auto partials = [](const GemmPlan& plan, std::int64_t result) {
      return plan.slices > 1 ? plan.slices * result : 0;
    };
    const std::int64_t sizes[] = {partials(forward, s.outputs()),
                                  partials(data, s.inputs()) + s.weights(),
                                  partials(weights, s.weights()) + bias_sums(s)};
    std::int64_t most = 0;
    for (const std::int64_t size : sizes) most = size > most ? size : most;
    return most * sizeof(float);
  }
};

/// Sums of a result's columns that a product makes: a part for each tile's rows, and none where
/// several blocks share an element. Without values.
constexpr ChannelSums column_sums(const GemmExtent& e, const GemmPlan& plan) {
  ChannelSums sums;
  sums.channels = static_cast<int>(e.columns);
  if (plan.slices > 1 || e.parts > 1) return sums;
  sums.parts = plan.row_tiles;
  sums.positions = static_cast<double>(e.rows);
  sums.of_part = plan.tile.rows;
  return sums;
}
/// Moments of dst by the forward product, and slopes of diff_src by the data gradient.
constexpr ChannelSums moments_of(const WindowShape& s, const ConvolutionPlan& plan) {
  return column_sums(forward_extent(s), plan.forward);
}
constexpr ChannelSums slopes_of(const WindowShape& s, const ConvolutionPlan& plan) {
  return column_sums(data_extent(s), plan.data);
}

/// For a device of so many multiprocessors.
constexpr ConvolutionPlan plan_convolution(const WindowShape& s, Numbers numbers,
                                           int multiprocessors) {
  const auto product = [&](const GemmExtent& extent) {
    return plan_gemm(extent, numbers, multiprocessors);
  };
  return {product(forward_extent(s)), product(data_extent(s)), product(weights_extent(s))};
}

}  // namespace cputrain::cuda
