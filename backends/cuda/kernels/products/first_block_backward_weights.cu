#include <algorithm>

#include "backends/cuda/kernels/products/first_block_tile.h"
#include "backends/cuda/kernels/products/gemm_slices.h"

namespace cputrain::cuda {
namespace {

/// Pixels side by side of each colour, and once more from the second on, as above: those of two
/// windows side by side are pairs. With these pitches a warp's columns meet other banks.
struct ColourPlanes {
  static constexpr int kStep = 1, kPitch = 38, kPlane = 266;
  static constexpr int kOnes = kPitch + 10;  ///< as far as a column reaches
  alignas(16) std::uint16_t of[2][kColours][kPlane];
  Bf16 ones[kOnes];

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
  CPUTRAIN_DEVICE static int column(int depth, int row, int window) {
    const Tap tap = Tap::of(depth);
    if (!tap.there) return 2 * kColours * kPlane;
    return (tap.column % 2 * kColours + tap.colour) * kPlane + (2 * row + tap.row) * kPitch +
           2 * (window + tap.column / 2);
  }
  /// The windows of `begin` side by side, or lower ones, or those `windows` to the right in the
  /// pool.
  CPUTRAIN_DEVICE unsigned at(int begin, int lower, int windows) const {
    return *reinterpret_cast<const unsigned*>(of[0][0] + begin + lower * kPitch + 2 * windows);
  }
};

template <class N>
using PixelsOf = std::conditional_t<N::kNumbers == Numbers::bf16, ColourPlanes, FloatPixels<N>>;

/// Gradients of two of the pool's windows in a lane, kApart columns from each other among the
/// warp's: four channels each, and who won.
template <class N>
struct PooledGradients {
  static constexpr int kApart = 4, kWords = 4 / kNumbersOfRegister<N>;
  struct alignas(kWords * sizeof(unsigned)) Four {
    unsigned of[kWords];
  };
  Four diff[2];
  WinnerWord winners[2];

  CPUTRAIN_DEVICE PooledGradients(const Tiles& tiles, const Position& first, const Lane& lane,
                                  int channel, const typename N::Stored* diff_dst,
                                  const WinnerWord* of_map) {
    for (int i = 0; i < 2; ++i) {
      const int column = first.column + lane.window<PixelsOf<N>>(lane.place + kApart * i);
      const int at = tiles.block_of_channels({first.image, first.row + lane.row, column}, channel);
      const auto* const from =
          diff_dst + offset_of_row(at, kChannelBlock) + channel % kChannelBlock;
      diff[i] = at < 0 ? Four{} : *reinterpret_cast<const Four*>(from);
      winners[i] = at < 0 ? 0 : of_map[at] >> channel % kChannelBlock * 4;
    }
  }
  /// A of a place of the windows, or of the upper (0) or lower two: rows are channels, of which a
  /// lane has four neighbours. Numbers that won, or zeros. Of pairs, which are windows side by
  /// side, bytes of two channels go where one of them won.
  CPUTRAIN_DEVICE void expand(int k, RowFragments<2>& a) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int channel = i % 4;
      const unsigned word = diff[i / 4].of[channel * kWords / 4];
      unsigned& to = a.of[channel / 2][channel % 2 + 2 * (i / 4)];
      if constexpr (kWords == 4) {
        to = winners[i / 4] & winner(channel, k) ? word : 0;
      } else {
        const unsigned left_and_right = winners[i / 4] / winner(channel, 2 * k) & 0x101u;
        to = __byte_perm(word, 0, 0x4444u - left_and_right * (channel % 2 == 0 ? 0x34u : 0x12u));
      }
    }
  }
};

/// A block's sums of all tiles: rows are channels.
struct BlockSums {
  float of[kChannels][kDepth];
  /// Those of all warps, in order.
  CPUTRAIN_DEVICE void add(const Sums<2, 4>& sums, const Lane& lane) {
#pragma unroll 1
    for (int warp = 0; warp < kWarps; ++warp) {
      __syncthreads();
      if (lane.warp != warp) continue;
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        const int r = i % 4, channel = 4 * lane.group + i / 16 * 2 + r / 2;
        float& sum = of[channel][i / 4 % 4 * 8 + 2 * lane.place + r % 2];
        sum = (warp == 0 ? 0 : sum) + sums.of[i / 16][i / 4 % 4][r];
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

template <class N>
__global__ void __launch_bounds__(kThreads, kBlocksEach<N>)
    first_block_backward_weights_kernel(Tiles tiles,
                                        const typename N::Stored* __restrict__ diff_dst,
                                        const WinnerWord* __restrict__ winners,
                                        float* __restrict__ partials,
                                        float* __restrict__ bias_partials) {
  using Pixels = PixelsOf<N>;
  using Gradients = PooledGradients<N>;
  struct Memory {
    Pixels pixels[2];
    BlockSums sums;
  };
  auto& memory = shared<Memory>();
  for (int i = thread_number(); i < Pixels::kOnes; i += kThreads) {
    for (Pixels& pixels : memory.pixels) pixels.ones[i] = rounded<N>(1);
  }
  const Lane lane;
  const int channels = tiles.block.dst.channels;
  const int first_channel = BlockNumber::of_thread().y * kChannels;
  int begins[4];  // of the lane's columns of B
  for (int j = 0; j < 4; ++j) {
    begins[j] = Pixels::column(8 * j + lane.group, lane.row, lane.window<Pixels>(lane.place));
  }
  Sums<2, 4> sums{};
  const auto add_tile = [&](const Pixels& pixels, const Gradients& gradients, Sums<2, 4>& to) {
#pragma unroll
    for (int k = 0; k < kInstructions<N>; ++k) {
      RowFragments<2> a;
      ColumnFragments<4> b;
      gradients.expand(k, a);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        b.of[i / 2][i % 2] = pixels.at(begins[i / 2], k, i % 2 * Gradients::kApart * Pixels::kStep);
      }
      Product<N>::add(to, a, b);
    }
  };
  for_tiles(
      tiles, memory.pixels,
      [&](const Position& first) {
        return Gradients(tiles, first, lane, first_channel + 4 * lane.group, diff_dst, winners);
      },
      [&](const Pixels& pixels, const Gradients& gradients) {
        if constexpr (Product<N>::kSumsApart) {
          Sums<2, 4> of_tile{};
          add_tile(pixels, gradients, of_tile);
          sums += of_tile;
        } else {
          add_tile(pixels, gradients, sums);
        }
      });
  memory.sums.add(sums, lane);
  const std::int64_t first_row = offset_of_row(block_number(), channels) + first_channel;
  memory.sums.store(min(channels - first_channel, kChannels),
                    partials + offset_of_row(first_row, FirstBlock::kWeightsEach),
                    bias_partials + first_row);
}

}  // namespace

int first_block_slices(Numbers numbers, const FirstBlock& block, int multiprocessors) {
  const Tiles tiles(block);
  const int each = with_numbers(numbers, []<class N>(N) { return kBlocksEach<N>; });
  return std::min(tiles.count, pieces(each * multiprocessors, tiles.groups));
}

void first_block_backward_weights(Stream stream, Numbers numbers, const FirstBlock& block,
                                  int slices, const void* diff_dst, const WinnerWord* winners,
                                  float* sums, float* diff_weights, float* diff_bias, bool add) {
  const Tiles tiles(block);
  float* const of_bias = sums + slices * block.weights();
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "first_block_backward_weights", first_block_backward_weights_kernel<N>,
           grid_of(slices, tiles.groups), dim3(kThreads), 0, tiles, diff_dst, winners, sums,
           of_bias);
  });
  const auto add_up = [&](float* partials, std::int64_t count, float* to) {
    using Result = GemmResult<BiasAndAdd<ExactNumbers>>;
    add_slices(stream, Result{{to, nullptr, add ? to : nullptr}, partials, count}, slices, count);
  };
  add_up(sums, block.weights(), diff_weights);
  if (diff_bias) add_up(of_bias, block.dst.channels, diff_bias);
}

}  // namespace cputrain::cuda
