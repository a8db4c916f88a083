#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "datasets/pixels/filter_taps.h"

/// The loops of convolve(), for each instruction set that a machine may have.
namespace cputrain::datasets {

/// Rows that are convolved at once. A tile has their bytes side by side, so that a weight meets
/// bytes that lie together: byte j of row i is byte i of tile[j].
constexpr std::size_t kLanes = 16;
constexpr std::size_t kTilePixel = 3 * kLanes;  ///< bytes
constexpr std::size_t kStrip = 4 * kLanes;      ///< bytes of a row that are summed at once

struct ConvolveKernels {
  const char* name;
  /// A tile resized along its rows into another one. `first` is the tile's first pixel.
  void (*tile)(const std::uint8_t* tile, int first, const FilterTaps&, std::uint8_t* to);
  /// `bytes` of a new row from `count` rows that lie `stride` apart. All may be read and written up
  /// to the next whole strip.
  void (*rows)(const std::uint8_t* rows, std::size_t stride, int count, const std::int32_t* weights,
               std::size_t bytes, std::uint8_t* to);
};

/// Those that this machine can run, the quickest first. All compute the same bytes.
std::span<const ConvolveKernels> convolve_kernels();

}  // namespace cputrain::datasets
