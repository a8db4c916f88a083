#pragma once

#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/products/gemm_plan.h"

/// How the matrix products of a convolution are cut: fixed by its size and the device, but for
/// tiles that are tried.
namespace cputrain::cuda {

/// Along one side of src, the positions that are covered by taps `phase`, phase + stride, ... of
/// windows, and by no others: position + pad is phase modulo stride. Tap phase + i * stride covers
/// the class's position n where window first_window + n - i does. So windows that cover a class's
/// positions lie side by side on dst, with taps against the direction: each class is a convolution
/// with stride 1, and none multiplies the zeros that a stride would put between windows.
struct PositionClass {
  int first, count;  ///< positions first, first + stride, ...
  int taps;          ///< 0: no window covers them
  int taps_before;   ///< those of classes before it
  int first_window;
};

struct PositionClasses {
  int positions, pad, size, stride;

  CPUTRAIN_HOST_DEVICE constexpr PositionClass of(int phase) const {
    const int first = ((phase - pad) % stride + stride) % stride;
    const int count = first < positions ? (positions - 1 - first) / stride + 1 : 0;
    const int taps = phase < size ? (size - 1 - phase) / stride + 1 : 0;
    const int rest = size % stride;
    return {first, count, taps, size / stride * phase + (phase < rest ? phase : rest),
            (first + pad - phase) / stride};
  }
};

/// Where taps lie in transposed weights: [class][input channel][tap of the class].
struct TransposedTaps {
  Divisor size, stride;
  int whole, rest;  ///< size / stride, size % stride

  static TransposedTaps of(int size, int stride) {
    return {Divisor(size), Divisor(stride), size / stride, size % stride};
  }

  struct Tap {
    int before;  ///< taps of classes before
    int taps;    ///< in the class
    int number;  ///< the tap's among them
  };
  CPUTRAIN_HOST_DEVICE constexpr Tap tap(int position) const {
    const int row = size.quotient(position);
    const Tap rows = on_side(row), columns = on_side(position - row * size.number());
    return {rows.before * size.number() + rows.taps * columns.before, rows.taps * columns.taps,
            rows.number * columns.taps + columns.number};
  }

 private:
  CPUTRAIN_HOST_DEVICE constexpr Tap on_side(int tap) const {
    const int number = stride.quotient(tap), phase = tap - number * stride.number();
    const bool longer = phase < rest;
    return {whole * phase + (longer ? phase : rest), whole + longer, number};
  }
};

/// rows: windows; columns: channels of dst; depth: taps.
constexpr GemmExtent forward_extent(const WindowShape& s) {
  return {s.windows(), s.dst.channels, s.taps()};
}

/// rows: positions of src; columns: channels of src; depth: taps by channels of dst. A part for
/// each class of positions (PositionClass); rows and depth are the largest class's.
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
/// step each. As many as there may be by a plan's tile.
constexpr int most_bias_parts(const GemmPlan& weights) {
  constexpr int kMost = 8;
  const int warps = weights.column_tiles * weights.tile.warps_across();
  return warps < kMost ? warps : kMost;
}

struct ConvolutionPlan {
  GemmPlan forward, data, weights;
  int bias_parts = 1;  ///< whatever the tile is

  /// Sums of slices, before them transposed weights or behind them sums for the bias.
  constexpr std::size_t workspace_bytes(const WindowShape& s) const {
    const auto partials = [](const GemmPlan& plan, std::int64_t result) {
      return plan.slices > 1 ? plan.slices * result : 0;
    };
    const std::int64_t sizes[] = {partials(forward, s.outputs()),
                                  partials(data, s.inputs()) + s.weights(),
                                  partials(weights, s.weights()) +
                                      offset_of_row(weights.slices * bias_parts, s.dst.channels)};
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
  const GemmPlan weights = product(weights_extent(s));
  return {product(forward_extent(s)), product(data_extent(s)), weights, most_bias_parts(weights)};
}

/// A direction's product.
struct PlannedProduct {
  GemmExtent (*extent)(const WindowShape&);
  GemmPlan ConvolutionPlan::*plan;
};
inline constexpr PlannedProduct kPlannedProducts[] = {{forward_extent, &ConvolutionPlan::forward},
                                                      {data_extent, &ConvolutionPlan::data},
                                                      {weights_extent, &ConvolutionPlan::weights}};

/// Whether a product may be made by a tile instead of the plan's: it might be quicker, and all bits
/// are the same. Partial sums of the bias have a warp each. `sums`: the product makes those of
/// columns, too, whose order is that of its tile's rows and warps, which no two tiles share.
constexpr bool may_take(const WindowShape& s, const ConvolutionPlan& plan, const PlannedProduct& of,
                        const TileShape& tile, Numbers numbers, bool sums) {
  const GemmPlan& own = plan.*of.plan;
  const GemmExtent e = of.extent(s);
  if (tile == own.tile) return true;
  if (sums || !has_kernels(tile, numbers, e.depth_inside) || !may_pay(e, own.tile, tile)) {
    return false;
  }
  return of.plan != &ConvolutionPlan::weights ||
         most_bias_parts(plan_by_tile(e, tile, own.slices)) >= plan.bias_parts;
}

}  // namespace cputrain::cuda
