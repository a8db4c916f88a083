#pragma once

#include <cstddef>

#include "backends/cpu/sparse/first_layer.h"
#include "core/casts.h"

/// What both passes of the first layer share: the rows of the image as padded rows of floats, and
/// sizes of what lies in scratch.
namespace cputrain::cpu::first_layer {
namespace {  // each file that includes this has copies for its instruction set

constexpr std::size_t kColours = 3, kRun = 3 * kColours, kTaps = 3 * kRun;
/// Columns that a tile of windows may reach behind the last one, and lanes behind the last number.
constexpr std::size_t kSlack = 64;
/// A row of windows sees so many rows of the image.
constexpr std::size_t kRowsSeen = 4;

// In place of the standard library's, which a linker might take from a file for one instruction
// set.
template <class T>
void fill(T* to, std::size_t count, T value) {
  for (std::size_t i = 0; i < count; ++i) to[i] = value;
}
template <class T>
void copy(const T* from, std::size_t count, T* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}
[[maybe_unused]] int least(int a, int b) { return a < b ? a : b; }

/// Numbers from one padded row to the next.
[[maybe_unused]] std::size_t row_size(const Shape& s) {
  const auto columns = to_size(s.columns.before + s.width + s.columns.after);
  return (columns * kColours + kSlack + 15) / 16 * 16;
}

/// Scale and offset of so many adjacent numbers of a row: whole pixels and whole vectors.
constexpr std::size_t kPatternSize = 16 * kColours;
struct ColourPattern {
  float scale[kPatternSize], offset[kPatternSize];
};
[[maybe_unused]] void fill_pattern(const Shape& s, ColourPattern& pattern) {
  for (std::size_t i = 0; i < kPatternSize; ++i) {
    pattern.scale[i] = s.scale.of[i % kColours];
    pattern.offset[i] = s.offset.of[i % kColours];
  }
}

/// Converts row `y` of the padded image.
[[maybe_unused]] void convert_row(const Shape& s, const ColourPattern& pattern,
                                  const std::uint8_t* image, int y, float* row) {
  const std::size_t size = row_size(s);
  const int from = y - s.rows.before;
  if (from < 0 || from >= s.height) {
    fill(row, size, 0.0f);
    return;
  }
  const auto width = to_size(s.width) * kColours;
  const std::size_t before = to_size(s.columns.before) * kColours;
  const std::uint8_t* bytes = image + to_size(from) * width;
  fill(row, before, 0.0f);
  float* numbers = row + before;
  std::size_t i = 0;
  for (; i + kPatternSize <= width; i += kPatternSize) {
    for (std::size_t k = 0; k < kPatternSize; ++k) {
      numbers[i + k] = static_cast<float>(bytes[i + k]) * pattern.scale[k] + pattern.offset[k];
    }
  }
  for (std::size_t k = 0; i + k < width; ++k) {
    numbers[i + k] = static_cast<float>(bytes[i + k]) * pattern.scale[k] + pattern.offset[k];
  }
  fill(row + before + width, size - before - width, 0.0f);
}

/// Brings the rows that window row `y` sees to `rows` (kRowsSeen x row_size). `previous`: they hold
/// what the window row before it saw.
[[maybe_unused]] void convert_rows(const Shape& s, const std::uint8_t* image, int y, bool previous,
                                   float* rows) {
  const std::size_t size = row_size(s);
  ColourPattern pattern;
  fill_pattern(s, pattern);
  if (previous) copy(rows + 2 * size, 2 * size, rows);
  for (int i = previous ? 2 : 0; i < to_int(kRowsSeen); ++i) {
    convert_row(s, pattern, image, 2 * y + i, rows + to_size(i) * size);
  }
}

/// A channel's sums: 3 rows of taps in kLanes numbers each, of which kRun count.
constexpr std::size_t kLanes = 16, kSumsOfChannel = 3 * kLanes;
constexpr std::size_t kMostChannels = 16;  ///< in a block

/// Entries of one channel's list for a row of windows: one more makes their number even, and whole
/// vectors are written.
[[maybe_unused]] std::size_t list_capacity(const Shape& s) {
  return (to_size(s.window_columns()) + 15) / 16 * 16 + 16;
}

}  // namespace
}  // namespace cputrain::cpu::first_layer
