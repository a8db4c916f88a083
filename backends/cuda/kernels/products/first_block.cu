#include "backends/cuda/kernels/products/first_block.h"

#include <algorithm>

#include "backends/cuda/kernels/divisor.h"
#include "backends/cuda/kernels/image_pixels.h"
#include "backends/cuda/kernels/packs.h"
#include "backends/cuda/kernels/products/gemm_slices.h"

namespace cputrain::cuda {
namespace {

// A block has kChannels output channels of tiles, one after the other. A tile is 2 x 16 of the
// pool's windows, which see 6 x 34 pixels. A warp has eight windows side by side.
inline constexpr int kTileRows = 2, kTileColumns = 16, kChannels = 32;
inline constexpr int kPixelRows = 2 * kTileRows + 2, kPixelPairs = kTileColumns + 1;
inline constexpr int kChunk = kNumbersOfChunk<Bf16Numbers>;
inline constexpr int kThreads = 128, kWarps = kThreads / 32, kBlocksEach = 4;
// The product's depth, and columns of the weights' gradient: three rows of taps, colours of each
// side by side, and one number behind each row.
inline constexpr int kDepth = 32, kRowDepth = 10, kColours = 3;

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
  /// The chunk of dst with the channel in a window, or -1 where there is none.
  CPUTRAIN_DEVICE int chunk(const Position& window, int channel) const {
    const MapShape& map = block.dst;
    if (window.row >= map.height || window.column >= map.width || channel >= map.channels)
      return -1;
    const int position = (window.image * map.height + window.row) * map.width + window.column;
    return position * (map.channels / kChunk) + channel / kChunk;
  }
};

/// A warp, the place of its first window, and a lane's in fragments (device/tensor_core.h).
struct Lane {
  int warp = thread_number() / 32, row = warp / 2, column = warp % 2 * 8;
  int group = thread_number() % 32 / 4, place = thread_number() % 4;
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

/// Pixels side by side, colour by colour, so that a row of taps is nine neighbours; and once more
/// from the second number on, so that pairs which begin at an odd one lie on 4 bytes, too.
struct RowsOfColours {
  static constexpr int kPitch = 104, kLast = 2 * kColours * kPixelPairs - 1;
  alignas(16) std::uint16_t of[2][kPixelRows][kPitch];

  CPUTRAIN_DEVICE void store(int row, int pair, const float* left, const float* right) {
    const int at = 2 * kColours * pair;
    auto* const words = reinterpret_cast<unsigned*>(&of[0][row][at]);
    words[0] = bf16_pair(left[0], left[1]);
    words[1] = bf16_pair(left[2], right[0]);
    words[2] = bf16_pair(right[1], right[2]);
    auto* const later = reinterpret_cast<unsigned*>(&of[1][row][at]);
    later[0] = bf16_pair(left[1], left[2]);
    later[1] = bf16_pair(right[0], right[1]);
    of[1][row][at + 4] = rounded<Bf16Numbers>(right[2]).bits;
    // The last one meets weights that are zero, and is any number.
    of[1][row][pair > 0 ? at - 1 : kLast] = rounded<Bf16Numbers>(left[0]).bits;
  }
  /// Where the pair from `depth` on begins in the left one of the windows in column `window` of the
  /// pool's row `row`. Weights behind the last tap are zero.
  CPUTRAIN_DEVICE static int begin(int depth, int row, int window) {
    const Tap tap = Tap::of(depth < 3 * kRowDepth ? depth : 0);
    return (2 * row + tap.row) * kPitch + kColours * (2 * window + tap.column) + tap.colour;
  }
  CPUTRAIN_DEVICE unsigned pair(int begin, int lower, int right) const {
    const int more = right ? kPixelRows * kPitch + kColours - 1 : 0;
    return *reinterpret_cast<const unsigned*>(of[0][0] + begin + lower * kPitch + more);
  }
};

/// B, by instruction, fragment and half of its depth: weights of a lane's columns. Column n of
/// fragment j is the channel with which a lane has eight neighbours of a row, two of each fragment.
CPUTRAIN_DEVICE void load_weights(unsigned (&b)[2][4][2], const Bf16* weights, int first_channel,
                                  int channels, const Lane& lane) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int j = i / 4, depth = 8 * (i % 4) + 2 * lane.place;
    const int channel = first_channel + lane.group / 2 * 8 + 2 * j + lane.group % 2;
    const auto number = [&](int number_of_depth) {
      const Tap tap = Tap::of(number_of_depth);
      if (!tap.there || channel >= channels) return 0u;
      const int row = channel * FirstBlock::kPositions + tap.row * 3 + tap.column;
      return unsigned{weights[offset_of_row(row, kChannelBlock) + tap.colour].bits};
    };
    b[i / 2 % 2][j][i % 2] = number(depth) | number(depth + 1) << 16;
  }
}

/// One of the pool's windows, eight channels, of which sums[lower][c / 2] has the left (c % 2) and
/// the right window's sum (2 + c % 2).
struct Pooled {
  Pack<Bf16Numbers> values;
  WinnerWord winners = 0;

  CPUTRAIN_DEVICE Pooled(const float (&sums)[2][4][4], const Pack<Bf16Numbers>& bias) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float* const upper = sums[0][c / 2] + c % 2;
      const float* const lower = sums[1][c / 2] + c % 2;
      const float best =
          larger_or_nan(larger_or_nan(upper[0], upper[2]), larger_or_nan(lower[0], lower[2]));
      const float value = best + bias.of[c];
      values.of[c] = larger_or_nan(value, 0);
      unsigned won = winner(c, 3);
      won = lower[0] == best ? winner(c, 2) : won;
      won = upper[2] == best ? winner(c, 1) : won;
      won = upper[0] == best ? winner(c, 0) : won;  // the first of equals
      winners |= value > 0 ? won : 0u;
    }
  }
};

__global__ void __launch_bounds__(kThreads, kBlocksEach)
    first_block_forward_kernel(Tiles tiles, const Bf16* __restrict__ weights,
                               const float* __restrict__ bias, Bf16* __restrict__ dst,
                               WinnerWord* __restrict__ winners) {
  const Lane lane;
  const int channels = tiles.block.dst.channels;
  const int first_channel = BlockNumber::of_thread().y * kChannels;
  const int channel = first_channel + kChunk * lane.place;
  unsigned b[2][4][2];
  load_weights(b, weights, first_channel, channels, lane);
  const auto of_bias = bias && channel < channels ? Pack<Bf16Numbers>::of_floats(bias + channel)
                                                  : Pack<Bf16Numbers>::all(0);
  int begins[4];  // of the lane's pairs of A, in each half of an instruction's depth
  for (int i = 0; i < 4; ++i) {
    begins[i] = RowsOfColours::begin(8 * i + 2 * lane.place, lane.row, lane.column + lane.group);
  }
  for_tiles(
      tiles, shared<RowsOfColours[2]>(), [&](const Position& first) { return first; },
      [&](const RowsOfColours& pixels, const Position& first) {
        // Rows of fragment i are upper (0) or lower windows: left ones, then right ones.
        float sums[2][4][4] = {};
        for (int k = 0; k < 2; ++k) {
          unsigned a[2][4];
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            a[i / 4][i % 4] = pixels.pair(begins[2 * k + i / 2 % 2], i / 4, i % 2);
          }
          mma_bf16(sums, a, b[k]);
        }
        const int column = first.column + lane.column + lane.group;
        const int chunk = tiles.chunk({first.image, first.row + lane.row, column}, channel);
        if (chunk < 0) return;
        const Pooled pooled(sums, of_bias);
        pooled.values.store(dst + offset_of_row(chunk, kChunk));
        if (winners) winners[chunk] = pooled.winners;
      });
}

/// Pixels side by side of each colour, and once more from the second on, as above: those of two
/// windows side by side are pairs. With these pitches a warp's columns meet other banks.
struct ColourPlanes {
  static constexpr int kPitch = 38, kPlane = 266;
  alignas(16) std::uint16_t of[2][kColours][kPlane];
  std::uint16_t ones[kPitch + 10];  ///< as far as a column reaches

  CPUTRAIN_DEVICE void store(int row, int pair, const float* left, const float* right) {
#pragma unroll
    for (int c = 0; c < kColours; ++c) {
      const unsigned both = bf16_pair(left[c], right[c]);
      std::uint16_t* const at = of[0][c] + row * kPitch + 2 * pair;
      std::uint16_t* const later = at + kColours * kPlane;
      *reinterpret_cast<unsigned*>(at) = both;
      later[-1] = static_cast<std::uint16_t>(both);  // of the first pair: between two rows
      later[0] = static_cast<std::uint16_t>(both >> 16);
    }
  }
  /// Where column `depth` of B begins at the windows in column `window` of the pool's row `row`.
  /// The bias' column, and those that nobody reads, are ones.
  CPUTRAIN_DEVICE static int begin(int depth, int row, int window) {
    const Tap tap = Tap::of(depth);
    if (!tap.there) return 2 * kColours * kPlane;
    return (tap.column % 2 * kColours + tap.colour) * kPlane + (2 * row + tap.row) * kPitch +
           2 * (window + tap.column / 2);
  }
  /// The windows of `begin`, or lower ones, or those `windows` to the right in the pool.
  CPUTRAIN_DEVICE unsigned pair(int begin, int lower, int windows) const {
    return *reinterpret_cast<const unsigned*>(of[0][0] + begin + lower * kPitch + 2 * windows);
  }
};

/// Gradients of two of the pool's windows in a lane, kApart from each other: four channels each,
/// and who won.
struct PooledGradients {
  static constexpr int kApart = 4;
  uint2 diff[2];
  WinnerWord winners[2];

  CPUTRAIN_DEVICE PooledGradients(const Tiles& tiles, const Position& window, int channel,
                                  const Bf16* diff_dst, const WinnerWord* of_map) {
    for (int i = 0; i < 2; ++i) {
      const int column = window.column + kApart * i;
      const int chunk = tiles.chunk({window.image, window.row, column}, channel);
      const Bf16* const from = diff_dst + offset_of_row(chunk, kChunk) + channel % kChunk;
      diff[i] = chunk < 0 ? make_uint2(0, 0) : *reinterpret_cast<const uint2*>(from);
      winners[i] = chunk < 0 ? 0 : of_map[chunk] >> channel % kChunk * 4;
    }
  }
  /// A of the upper (0) or lower windows: rows are channels, of which a lane has four neighbours,
  /// and pairs are windows side by side. Bytes of two channels go where one of them won, or zeros.
  CPUTRAIN_DEVICE void expand(int lower, unsigned (&a)[2][4]) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int channel = i % 4;
      const unsigned two = channel < 2 ? diff[i / 4].x : diff[i / 4].y;
      const unsigned left_and_right = winners[i / 4] / winner(channel, 2 * lower) & 0x101u;
      const unsigned bytes = 0x4444u - left_and_right * (channel % 2 == 0 ? 0x34u : 0x12u);
      a[channel / 2][channel % 2 + 2 * (i / 4)] = __byte_perm(two, 0, bytes);
    }
  }
};

/// A block's sums of all tiles: rows are channels.
struct BlockSums {
  float of[kChannels][kDepth];
  /// Those of all warps, in order.
  CPUTRAIN_DEVICE void add(const float (&sums)[2][4][4], const Lane& lane) {
#pragma unroll 1
    for (int warp = 0; warp < kWarps; ++warp) {
      __syncthreads();
      if (lane.warp != warp) continue;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int r = i % 4, channel = 4 * lane.group + i / 16 * 2 + r / 2;
        float& sum = of[channel][i / 4 % 4 * 8 + 2 * lane.place + r % 2];
        sum = (warp == 0 ? 0 : sum) + sums[i / 16][i / 4 % 4][r];
      }
    }
    __syncthreads();
  }
  /// As gradients lie: those of so many channels.
  CPUTRAIN_DEVICE void store(int channels, float* diff_weights, float* diff_bias) const {
    for (int i = thread_number(); i < channels * FirstBlock::kWeightsEach; i += kThreads) {
      const int position = i / kChannelBlock % FirstBlock::kPositions, colour = i % kChannelBlock;
      const float* const row = of[i / FirstBlock::kWeightsEach] + position / 3 * kRowDepth;
      diff_weights[i] = colour < kColours ? row[position % 3 * kColours + colour] : 0;
    }
    const int channel = thread_number();
    if (channel < channels) diff_bias[channel] = of[channel][3 * kColours];
  }
};

__global__ void __launch_bounds__(kThreads, kBlocksEach)
    first_block_backward_weights_kernel(Tiles tiles, const Bf16* __restrict__ diff_dst,
                                        const WinnerWord* __restrict__ winners,
                                        float* __restrict__ partials,
                                        float* __restrict__ bias_partials) {
  struct Memory {
    ColourPlanes pixels[2];
    BlockSums sums;
  };
  auto& memory = shared<Memory>();
  for (int i = thread_number(); i < ColourPlanes::kPitch + 10; i += kThreads) {
    for (ColourPlanes& planes : memory.pixels) planes.ones[i] = rounded<Bf16Numbers>(1).bits;
  }
  const Lane lane;
  const int channels = tiles.block.dst.channels;
  const int first_channel = BlockNumber::of_thread().y * kChannels;
  const int of_lane = lane.column + lane.place;
  int begins[4];  // of the lane's columns of B
  for (int j = 0; j < 4; ++j) {
    begins[j] = ColourPlanes::begin(8 * j + lane.group, lane.row, of_lane);
  }
  float sums[2][4][4] = {};
  for_tiles(
      tiles, memory.pixels,
      [&](const Position& first) {
        const Position window{first.image, first.row + lane.row, first.column + of_lane};
        return PooledGradients(tiles, window, first_channel + 4 * lane.group, diff_dst, winners);
      },
      [&](const ColourPlanes& pixels, const PooledGradients& gradients) {
        for (int lower = 0; lower < 2; ++lower) {
          unsigned a[2][4], b[4][2];
          gradients.expand(lower, a);
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            b[i / 2][i % 2] = pixels.pair(begins[i / 2], lower, i % 2 * PooledGradients::kApart);
          }
          mma_bf16(sums, a, b);
        }
      });
  memory.sums.add(sums, lane);
  const std::int64_t first_row = offset_of_row(block_number(), channels) + first_channel;
  memory.sums.store(min(channels - first_channel, kChannels),
                    partials + offset_of_row(first_row, FirstBlock::kWeightsEach),
                    bias_partials + first_row);
}

}  // namespace

int first_block_slices(const FirstBlock& block, int multiprocessors) {
  const Tiles tiles(block);
  return std::min(tiles.count, pieces(kBlocksEach * multiprocessors, tiles.groups));
}

void first_block_forward(Stream stream, const FirstBlock& block, int slices, const void* weights,
                         const float* bias, void* dst, WinnerWord* winners) {
  const Tiles tiles(block);
  launch(stream, "first_block_forward", first_block_forward_kernel, grid_of(slices, tiles.groups),
         dim3(kThreads), 0, tiles, weights, bias, dst, winners);
}

void first_block_backward_weights(Stream stream, const FirstBlock& block, int slices,
                                  const void* diff_dst, const WinnerWord* winners, float* sums,
                                  float* diff_weights, float* diff_bias, bool add) {
  const Tiles tiles(block);
  float* const of_bias = sums + slices * block.weights();
  launch(stream, "first_block_backward_weights", first_block_backward_weights_kernel,
         grid_of(slices, tiles.groups), dim3(kThreads), 0, tiles, diff_dst, winners, sums, of_bias);
  const auto add_up = [&](float* partials, std::int64_t count, float* to) {
    using Result = GemmResult<BiasAndAdd<ExactNumbers>>;
    add_slices(stream, Result{{to, nullptr, add ? to : nullptr}, partials, count}, slices, count);
  };
  add_up(sums, block.weights(), diff_weights);
  if (diff_bias) add_up(of_bias, block.dst.channels, diff_bias);
}

}  // namespace cputrain::cuda
