// Included by the files that are compiled for one instruction set each.

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/sparse/first_layer_kernels.h"
#include "backends/cpu/sparse/image_rows.h"
#include "core/casts.h"

namespace cputrain::cpu::first_layer {
namespace {

/// One row of windows of a few adjacent blocks of channels.
struct Target {
  const float* rows;  ///< the image's, padded and converted
  std::size_t row_size;
  const float* weights;
  const float* bias;  ///< null: none
  int windows;
  float* dst;
  std::uint8_t* winners;  ///< null: not wanted
  std::size_t plane;      ///< numbers from one block of the pooled map to the next
  bool relu;
};

/// Largest and its position of the four outputs of a window.
template <int W>
void pool_window(const typename Lanes<W>::Float (&outputs)[4], bool relu, float* dst,
                 std::uint8_t* winners) {
  using L = Lanes<W>;
  typename L::Float best = outputs[0];
  typename L::Int winner{};
  for (int i = 1; i < 4; ++i) {
    const typename L::Int better = outputs[i] > best;
    best = better ? outputs[i] : best;
    winner = better ? typename L::Int{} + i : winner;
  }
  if (relu) best = best < 0 ? typename L::Float{} : best;
  *reinterpret_cast<typename L::AnyFloat*>(dst) = best;
  if (winners) {
    *reinterpret_cast<typename L::AnyByte*>(winners) =
        __builtin_convertvector(winner, typename L::Byte);
  }
}

/// How a tile lies in registers of W numbers: `kVectors` of them hold adjacent channels, which are
/// whole blocks of kBlock channels.
template <int kBlock, int W, int kVectors>
struct Tile {
  static_assert(kVectors * W % kBlock == 0);
  using L = Lanes<W>;
  using Float = typename L::Float;

  /// Where the channels of vector `v` begin, if a block has `stride` numbers.
  static constexpr std::size_t place(int v, std::size_t stride) {
    return to_size(v * W / kBlock) * stride + to_size(v * W % kBlock);
  }
  static Float load(const float* at) { return *reinterpret_cast<const typename L::AnyFloat*>(at); }
};

/// `kWindows` windows from number `first` on: 4 * kWindows * kVectors sums in registers. For each
/// tap every weight is loaded once, and every pixel. The image row that the lower outputs read is
/// the one that the upper outputs read at the next kernel row.
template <int kBlock, int W, int kWindows, int kVectors>
void forward_tile(const Target& t, int first) {
  using T = Tile<kBlock, W, kVectors>;
  constexpr int kColumns = 2 * kWindows;
  typename T::Float sums[kVectors][2][kColumns];
  for (int v = 0; v < kVectors; ++v) {
    const auto bias = t.bias ? T::load(t.bias + v * W) : typename T::Float{};
#pragma GCC unroll 16
    for (int x = 0; x < kColumns; ++x) sums[v][0][x] = sums[v][1][x] = bias;
  }
  const float* above = t.rows + to_size(first) * 2 * kColours;
  const float* weights = t.weights;
  for (int kernel_row = 0; kernel_row < 3; ++kernel_row) {
    const float* below = above + t.row_size;
#pragma GCC unroll 1
    for (std::size_t tap = 0; tap < kRun; ++tap, weights += kBlock) {
      typename T::Float weight[kVectors];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) weight[v] = T::load(weights + T::place(v, kTaps * kBlock));
#pragma GCC unroll 16
      for (int x = 0; x < kColumns; ++x) {
        const float up = above[to_size(x) * kColours + tap];
        const float down = below[to_size(x) * kColours + tap];
#pragma GCC unroll 2
        for (int v = 0; v < kVectors; ++v) {
          sums[v][0][x] += up * weight[v];
          sums[v][1][x] += down * weight[v];
        }
      }
    }
    above = below;
  }
  const int count = least(kWindows, t.windows - first);
  for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 8
    for (int w = 0; w < kWindows; ++w) {
      if (w >= count) break;
      const typename T::Float outputs[4] = {sums[v][0][2 * w], sums[v][0][2 * w + 1],
                                            sums[v][1][2 * w], sums[v][1][2 * w + 1]};
      const std::size_t at = T::place(v, t.plane) + to_size(first + w) * std::size_t{kBlock};
      pool_window<W>(outputs, t.relu, t.dst + at, t.winners ? t.winners + at : nullptr);
    }
  }
}

template <int kBlock, int W, int kWindows, int kVectors>
void forward_row(const Target& t) {
  for (int first = 0; first < t.windows; first += kWindows) {
    forward_tile<kBlock, W, kWindows, kVectors>(t, first);
  }
}

/// Where blocks of channels are taken in pairs, a last odd one has twice the windows.
template <int kBlock, int W, int kWindows, int kVectors>
void forward_rows(const Shape& s, const std::uint8_t* image, const float* weights,
                  const float* bias, int begin, int end, float* rows, float* dst,
                  std::uint8_t* winners) {
  constexpr int kBlocks = kVectors * W / kBlock;
  const auto width = to_size(s.window_columns()) * kBlock;
  const std::size_t plane = width * to_size(s.window_rows());
  const int blocks = s.channels / kBlock;
  for (int y = begin; y < end; ++y) {
    convert_rows(s, image, y, y > begin, rows);
    for (int b = 0; b < blocks; b += kBlocks) {
      const std::size_t first = to_size(b) * kBlock;
      const std::size_t at = to_size(b) * plane + to_size(y) * width;
      const Target target{rows,
                          row_size(s),
                          weights + first * kTaps,
                          bias ? bias + first : nullptr,
                          s.window_columns(),
                          dst + at,
                          winners ? winners + at : nullptr,
                          plane,
                          s.relu};
      if (b + kBlocks <= blocks) {
        forward_row<kBlock, W, kWindows, kVectors>(target);
      } else {
        forward_row<kBlock, W, kWindows * kBlocks, kVectors / kBlocks>(target);
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::first_layer
