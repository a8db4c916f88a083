// Included by the files that are compiled for one instruction set each.
#include <bit>

#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/sparse/first_layer_kernels.h"
#include "backends/cpu/sparse/image_rows.h"
#include "core/casts.h"

namespace cputrain::cpu::first_layer {
namespace {

/// Gradients of one row of windows of one block of channels, by channel.
struct Lists {
  float* values;           ///< block x capacity
  std::uint32_t* offsets;  ///< block x capacity: of the first number that it meets
  std::size_t capacity;
  std::size_t sizes[kMostChannels];
};

/// One row of windows of one block.
struct WindowRow {
  Outputs outputs;  ///< its first window's
  std::size_t windows;
  std::size_t row_size;  ///< numbers from one row of the image to the next
  bool relu;
};

/// From the first number that window 0 sees to that which its output at `position` sees.
std::uint32_t start_of(const WindowRow& row, unsigned position) {
  return (position & 1) * static_cast<std::uint32_t>(kColours) +
         (position >> 1) * static_cast<std::uint32_t>(row.row_size);
}

/// Writes every gradient behind the last of its list, and lets it stay if it counts. No branch
/// depends on the numbers. W: numbers in a register.
template <std::size_t kBlock, std::size_t W>
void list_row(const WindowRow& row, Lists& lists, float* bias_sums) {
  using L = Lanes<W>;
  using Any = typename L::AnyFloat;
  const std::uint32_t starts[4] = {start_of(row, 0), start_of(row, 1), start_of(row, 2),
                                   start_of(row, 3)};
  for (std::size_t window = 0; window < row.windows; ++window) {
    const std::size_t at = window * kBlock;
    float diffs[kBlock];
    for (std::size_t c = 0; c < kBlock; c += W) {
      typename L::Float diff = *reinterpret_cast<const Any*>(row.outputs.diff + at + c);
      if (row.relu) {
        const typename L::Float dst = *reinterpret_cast<const Any*>(row.outputs.dst + at + c);
        diff = dst > 0 ? diff : typename L::Float{};
      }
      *reinterpret_cast<Any*>(diffs + c) = diff;
      *reinterpret_cast<Any*>(bias_sums + c) += diff;
    }
    const auto first = static_cast<std::uint32_t>(2 * kColours * window);
    for (std::size_t c = 0; c < kBlock; ++c) {
      const std::size_t place = c * lists.capacity + lists.sizes[c];
      lists.values[place] = diffs[c];
      lists.offsets[place] = first + starts[row.outputs.winners[at + c]];
      lists.sizes[c] += (std::bit_cast<std::uint32_t>(diffs[c]) << 1) != 0;
    }
  }
}

/// sums (3 x kLanes) += entries of one channel times what they meet in `rows`. A run of numbers is
/// read in kParts registers of W numbers, as many as hold the kRun that count.
template <std::size_t W>
void gather(const Lists& lists, std::size_t channel, const float* rows, std::size_t row_size,
            float* sums) {
  using L = Lanes<W>;
  constexpr std::size_t kParts = (kRun + W - 1) / W;
  float* values = lists.values + channel * lists.capacity;
  std::uint32_t* offsets = lists.offsets + channel * lists.capacity;
  const std::size_t size = lists.sizes[channel];
  values[size] = 0;  // to take entries in pairs
  offsets[size] = 0;
  typename L::Float sums_of[2][3][kParts]{};
  for (std::size_t i = 0; i < size; i += 2) {
#pragma GCC unroll 2
    for (std::size_t entry = 0; entry < 2; ++entry) {
      const float value = values[i + entry];
      const float* run = rows + offsets[i + entry];
#pragma GCC unroll 3
      for (std::size_t row = 0; row < 3; ++row, run += row_size) {
#pragma GCC unroll 3
        for (std::size_t part = 0; part < kParts; ++part) {
          sums_of[entry][row][part] +=
              value * *reinterpret_cast<const typename L::AnyFloat*>(run + part * W);
        }
      }
    }
  }
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t part = 0; part < kParts; ++part) {
      *reinterpret_cast<typename L::AnyFloat*>(sums + row * kLanes + part * W) +=
          sums_of[0][row][part] + sums_of[1][row][part];
    }
  }
}

template <std::size_t kBlock, std::size_t W, void (*kListRow)(const WindowRow&, Lists&, float*)>
void backward_rows(const Shape& s, const std::uint8_t* image, const Outputs& out, int begin,
                   int end, float* scratch, float* sums) {
  const std::size_t size = row_size(s), capacity = list_capacity(s);
  float* rows = scratch;
  float* values = rows + kRowsSeen * size;
  Lists lists{values, reinterpret_cast<std::uint32_t*>(values + kBlock * capacity), capacity, {}};
  const auto windows = to_size(s.window_columns());
  const std::size_t plane = windows * to_size(s.window_rows()) * kBlock;
  const auto channels = to_size(s.channels);
  float* bias_sums = sums + channels * kSumsOfChannel;
  for (int y = begin; y < end; ++y) {
    convert_rows(s, image, y, y > begin, rows);
    for (std::size_t first = 0; first < channels; first += kBlock) {
      const std::size_t at = first / kBlock * plane + to_size(y) * windows * kBlock;
      const Outputs here{s.relu ? out.dst + at : nullptr, out.winners + at, out.diff + at};
      fill(lists.sizes, kBlock, std::size_t{0});
      kListRow(WindowRow{here, windows, size, s.relu}, lists, bias_sums + first);
      for (std::size_t c = 0; c < kBlock; ++c) {
        gather<W>(lists, c, rows, size, sums + (first + c) * kSumsOfChannel);
      }
    }
  }
}

}  // namespace
}  // namespace cputrain::cpu::first_layer
