#pragma once

#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/image_pixels.h"
#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/products/first_block.h"
#include "backends/cuda/kernels/products/gemm_fragments.h"

/// What both kernels of the first block (first_block.h) have in common: tiles, and their pixels in
/// shared memory.
namespace cputrain::cuda {

// A block has kChannels output channels of tiles, one after the other. A tile is 2 x 16 of the
// pool's windows, which see 6 x 34 pixels. A warp has eight windows side by side.
inline constexpr int kTileRows = 2, kTileColumns = 16, kChannels = 32;
inline constexpr int kPixelRows = 2 * kTileRows + 2, kPixelPairs = kTileColumns + 1;
inline constexpr int kThreads = 128, kWarps = kThreads / 32;
/// Blocks a multiprocessor. In exact there are twice the sums, and halves of what is multiplied.
template <class N>
inline constexpr int kBlocksEach = N::kNumbers == Numbers::exact ? 3 : 4;
// The product's depth, and columns of the weights' gradient: three rows of taps, colours of each
// side by side, and one number behind each row.
inline constexpr int kDepth = 32, kRowDepth = 10, kColours = 3;
/// A register holds a pair of bf16 numbers; and instructions that multiply the depth.
template <class N>
inline constexpr int kNumbersOfRegister = sizeof(unsigned) / sizeof(typename N::Stored);
template <class N>
inline constexpr int kInstructions = kDepth / (8 * kNumbersOfRegister<N>);

/// The block as kernels take it.
struct Tiles {
  FirstBlock block;
  PositionNumbers numbers;
  int count, groups;  ///< groups of channels

  explicit Tiles(const FirstBlock& b)
      : block(b),
        numbers{Divisor(pieces(b.dst.height, kTileRows)),
                Divisor(pieces(b.dst.width, kTileColumns))},
        count(b.load.images * numbers.high.number() * numbers.wide.number()),
        groups(pieces(b.dst.channels, kChannels)) {}

  /// The first of the pool's windows.
  CPUTRAIN_DEVICE Position first_window(int number) const {
    const Position tile = numbers.position(number);
    return {tile.image, tile.row * kTileRows, tile.column * kTileColumns};
  }
  /// The eight channels of dst with this one in a window, or -1 where there are none.
  CPUTRAIN_DEVICE int block_of_channels(const Position& window, int channel) const {
    const MapShape& map = block.dst;
    if (window.row >= map.height || window.column >= map.width || channel >= map.channels)
      return -1;
    const int position = (window.image * map.height + window.row) * map.width + window.column;
    return position * (map.channels / kChannelBlock) + channel / kChannelBlock;
  }
};

/// A warp, which has eight windows of a row, and a lane's place in fragments
/// (device/tensor_core.h).
struct Lane {
  int warp = thread_number() / 32, row = warp / 2;
  int group = thread_number() % 32 / 4, place = thread_number() % 4;

  /// The column of the warp's window `i`. Two warps share a row's by halves, or in turns.
  template <class Pixels>
  CPUTRAIN_DEVICE int window(int i) const {
    return warp % 2 * (Pixels::kStep == 1 ? 8 : 1) + Pixels::kStep * i;
  }
};

/// Which weight a number of the depth is.
struct Tap {
  int row, column, colour;
  bool there;

  CPUTRAIN_DEVICE static Tap of(int depth) {
    const int row = depth / kRowDepth, place = depth % kRowDepth;
    return {row, place / kColours, place % kColours, row < 3 && place < 3 * kColours};
  }
};

/// Two pixels side by side, which a thread brings to shared memory. Bytes are loaded while the tile
/// before is multiplied.
struct PixelPair {
  const int row = thread_number() / kPixelPairs, pair = thread_number() % kPixelPairs;
  bool there[2];
  uchar4 bytes[2];

  CPUTRAIN_DEVICE void load(const Tiles& tiles, const Position& first) {
    const FirstBlock& b = tiles.block;
    const int y = 2 * first.row - b.zeros + row, x = 2 * first.column - b.zeros + 2 * pair;
    if (row >= kPixelRows) return;
    const compute::ImageMove move = b.load.facts->moves[first.image];
    for (int i = 0; i < 2; ++i) {
      there[i] = y >= 0 && y < b.load.height && x + i >= 0 && x + i < b.load.width;
      if (there[i]) bytes[i] = moved_pixel(b.load, move, y, x + i);
    }
  }
  /// Their numbers: zeros outside of the image.
  template <class Pixels>
  CPUTRAIN_DEVICE void store(const Tiles& tiles, Pixels& pixels) const {
    if (row >= kPixelRows) return;
    float numbers[2][kColours] = {};
    for (int i = 0; i < 2; ++i) {
      if (there[i]) numbers_of(tiles.block.load, bytes[i], numbers[i]);
    }
    pixels.store(row, pair, numbers[0], numbers[1]);
  }
};

/// multiply(a tile's pixels, what `load` of its first window returned) for a block's tiles, one
/// after the other. Both kinds of loads are a tile ahead.
template <class Pixels, class Load, class Multiply>
CPUTRAIN_DEVICE void for_tiles(const Tiles& tiles, Pixels (&pixels)[2], const Load& load,
                               const Multiply& multiply) {
  int number = block_number();
  PixelPair pair;
  pair.load(tiles, tiles.first_window(number));
  auto beside = load(tiles.first_window(number));
#pragma unroll 1
  for (int stage = 0; number < tiles.count; stage ^= 1) {
    pair.store(tiles, pixels[stage]);
    const auto now = beside;
    number += static_cast<int>(gridDim.x);
    if (number < tiles.count) {
      const Position first = tiles.first_window(number);
      pair.load(tiles, first);
      beside = load(first);
    }
    __syncthreads();
    multiply(pixels[stage], now);
  }
}

/// Pixels that are floats, colour by colour, so that a row of taps is nine neighbours. With windows
/// of a warp two apart, lanes meet other banks.
template <class N>
struct FloatPixels {
  static constexpr int kStep = 2, kPitch = 2 * kColours * kPixelPairs;
  static constexpr int kOnes = kPitch + 10 * kColours * kStep;  ///< as far as columns of B reach
  alignas(16) float of[kPixelRows * kPitch];
  float ones[kOnes];

  CPUTRAIN_DEVICE void store(int row, int pair, const float* left, const float* right) {
    auto* const pairs = reinterpret_cast<float2*>(of + row * kPitch + 2 * kColours * pair);
    pairs[0] = make_float2(rounded<N>(left[0]), rounded<N>(left[1]));
    pairs[1] = make_float2(rounded<N>(left[2]), rounded<N>(right[0]));
    pairs[2] = make_float2(rounded<N>(right[1]), rounded<N>(right[2]));
  }
  /// Where number `depth` begins in the left upper one of the windows in column `window` of the
  /// pool's row `row`. Where there is no weight it is a neighbour, which is multiplied by zero.
  CPUTRAIN_DEVICE static int row_of_taps(int depth, int row, int window) {
    return column(min(Tap::of(depth).there ? depth : depth - 1, 3 * kRowDepth - 2), row, window);
  }
  /// The same of column `depth` of B. The bias' column, and those that nobody reads, are ones.
  CPUTRAIN_DEVICE static int column(int depth, int row, int window) {
    const Tap tap = Tap::of(depth);
    if (!tap.there) return kPixelRows * kPitch;
    return (2 * row + tap.row) * kPitch + kColours * (2 * window + tap.column) + tap.colour;
  }
  /// Where the window at a place in that of the pool begins, so many of the pool's to the right.
  CPUTRAIN_DEVICE unsigned at(int begin, int place, int windows = 0) const {
    return reinterpret_cast<const unsigned*>(
        this)[begin + place / 2 * kPitch + (place % 2 + 2 * windows) * kColours];
  }
};

}  // namespace cputrain::cuda
