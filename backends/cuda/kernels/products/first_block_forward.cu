#include "backends/cuda/kernels/products/first_block_tile.h"

namespace cputrain::cuda {
namespace {

/// Pixels side by side, colour by colour, so that a row of taps is nine neighbours; and once more
/// from the second number on, so that pairs which begin at an odd one lie on 4 bytes, too.
struct RowsOfColours {
  static constexpr int kStep = 1, kPitch = 104, kLast = 2 * kColours * kPixelPairs - 1;
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
  CPUTRAIN_DEVICE static int row_of_taps(int depth, int row, int window) {
    const Tap tap = Tap::of(depth < 3 * kRowDepth ? depth : 0);
    return (2 * row + tap.row) * kPitch + kColours * (2 * window + tap.column) + tap.colour;
  }
  CPUTRAIN_DEVICE unsigned at(int begin, int place) const {
    const int more = place % 2 != 0 ? kPixelRows * kPitch + kColours - 1 : 0;
    return *reinterpret_cast<const unsigned*>(of[0][0] + begin + place / 2 * kPitch + more);
  }
};

template <class N>
using PixelsOf = std::conditional_t<N::kNumbers == Numbers::bf16, RowsOfColours, FloatPixels<N>>;

CPUTRAIN_DEVICE unsigned bits_of(Bf16 number) { return number.bits; }
CPUTRAIN_DEVICE unsigned bits_of(float number) { return __float_as_uint(number); }

/// B by instruction: weights of a lane's columns. Column n of fragment j is the channel with which
/// a lane has eight neighbours of a row, two of each fragment.
template <class N>
CPUTRAIN_DEVICE void load_weights(ColumnFragments<4> (&b)[kInstructions<N>],
                                  const typename N::Stored* weights, int first_channel,
                                  int channels, const Lane& lane) {
  constexpr int kEach = kNumbersOfRegister<N>, kHalves = 2 * kInstructions<N>;
#pragma unroll
  for (int i = 0; i < 4 * kHalves; ++i) {
    const int j = i / kHalves, half = i % kHalves, depth = (4 * half + lane.place) * kEach;
    const int channel = first_channel + lane.group / 2 * 8 + 2 * j + lane.group % 2;
    const auto number = [&](int number_of_depth) {
      const Tap tap = Tap::of(number_of_depth);
      if (!tap.there || channel >= channels) return 0u;
      const int row = channel * FirstBlock::kPositions + tap.row * 3 + tap.column;
      return bits_of(weights[offset_of_row(row, kChannelBlock) + tap.colour]);
    };
    b[half / 2].of[j][half % 2] =
        kEach == 1 ? number(depth) : number(depth) | number(depth + 1) << 16;
  }
}

/// One of the pool's windows, eight channels, of which sums.of[lower][c / 2] has the left (c % 2)
/// and the right window's sum (2 + c % 2).
template <class N>
struct Pooled {
  using Values = Pack<N, kChannelBlock>;
  Values values;
  WinnerWord winners = 0;

  CPUTRAIN_DEVICE Pooled(const Sums<2, 4>& sums, const Values& bias) {
#pragma unroll
    for (int c = 0; c < 8; ++c) {
      const float* const upper = sums.of[0][c / 2] + c % 2;
      const float* const lower = sums.of[1][c / 2] + c % 2;
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

template <class N>
__global__ void __launch_bounds__(kThreads, kBlocksEach<N>)
    first_block_forward_kernel(Tiles tiles, const typename N::Stored* __restrict__ weights,
                               const float* __restrict__ bias, typename N::Stored* __restrict__ dst,
                               WinnerWord* __restrict__ winners) {
  using Pixels = PixelsOf<N>;
  using Values = typename Pooled<N>::Values;
  const Lane lane;
  const int channels = tiles.block.dst.channels;
  const int first_channel = BlockNumber::of_thread().y * kChannels;
  const int channel = first_channel + kChannelBlock * lane.place;
  const int window = lane.window<Pixels>(lane.group);
  ColumnFragments<4> b[kInstructions<N>];
  load_weights<N>(b, weights, first_channel, channels, lane);
  const auto of_bias =
      bias && channel < channels ? Values::of_floats(bias + channel) : Values::all(0);
  int begins[2 * kInstructions<N>];  // of the lane's numbers of A, in halves of an instruction
  for (int i = 0; i < 2 * kInstructions<N>; ++i) {
    begins[i] = Pixels::row_of_taps((4 * i + lane.place) * kNumbersOfRegister<N>, lane.row, window);
  }
  for_tiles(
      tiles, shared<Pixels[2]>(), [&](const Position& first) { return first; },
      [&](const Pixels& pixels, const Position& first) {
        // Rows of fragment i are upper (0) or lower windows: left ones, then right ones.
        Sums<2, 4> sums{};
#pragma unroll
        for (int k = 0; k < kInstructions<N>; ++k) {
          RowFragments<2> a;
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            a.of[i / 4][i % 4] = pixels.at(begins[2 * k + i / 2 % 2], i / 4 * 2 + i % 2);
          }
          Product<N>::add(sums, a, b[k]);
        }
        const int at = tiles.block_of_channels(
            {first.image, first.row + lane.row, first.column + window}, channel);
        if (at < 0) return;
        const Pooled<N> pooled(sums, of_bias);
        pooled.values.store(dst + offset_of_row(at, kChannelBlock));
        if (winners) winners[at] = pooled.winners;
      });
}

}  // namespace

void first_block_forward(Stream stream, Numbers numbers, const FirstBlock& block, int slices,
                         const void* weights, const float* bias, void* dst, WinnerWord* winners) {
  const Tiles tiles(block);
  with_numbers(numbers, [&]<class N>(N) {
    launch(stream, "first_block_forward", first_block_forward_kernel<N>,
           grid_of(slices, tiles.groups), dim3(kThreads), 0, tiles, weights, bias, dst, winners);
  });
}

}  // namespace cputrain::cuda
