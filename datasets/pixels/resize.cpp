#include "datasets/pixels/resize.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace cputrain::datasets {
namespace {

/// The two source pixels of a destination pixel along one axis, and how far it lies between them.
struct Tap {
  std::size_t low, high;
  float fraction;
};

std::vector<Tap> taps(int in, int out) {
  std::vector<Tap> result;
  result.reserve(static_cast<std::size_t>(out));
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (int i = 0; i < out; ++i) {
    const float position = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
    const float below = std::floor(position);
    const int low = static_cast<int>(below);
    result.push_back({static_cast<std::size_t>(std::clamp(low, 0, in - 1)),
                      static_cast<std::size_t>(std::clamp(low + 1, 0, in - 1)), position - below});
  }
  return result;
}

/// Source rows brought to the new width. The two that were used last are kept, since neighbouring
/// rows of the new image often lie between the same ones.
class StretchedRows {
 public:
  StretchedRows(const PixelView& image, int width)
      : image_(image), columns_(taps(image.width, width)) {
    for (Row& row : rows_) row.values.resize(columns_.size() * 3);
  }

  /// Valid until the second call after this one, with another row each.
  const float* row(std::size_t number) {
    if (rows_[1].number == number) std::swap(rows_[0], rows_[1]);
    if (rows_[0].number != number) {
      std::swap(rows_[0], rows_[1]);
      stretch(number, rows_[0].values.data());
      rows_[0].number = number;
    }
    return rows_[0].values.data();
  }

 private:
  struct Row {
    std::optional<std::size_t> number;
    std::vector<float> values;
  };

  void stretch(std::size_t number, float* __restrict out) const {
    const std::uint8_t* src = image_.row(number);
    for (const Tap& tap : columns_) {
      const std::uint8_t* low = src + static_cast<std::ptrdiff_t>(tap.low) * image_.right;
      const std::uint8_t* high = src + static_cast<std::ptrdiff_t>(tap.high) * image_.right;
      for (int c = 0; c < 3; ++c) {
        const float left = low[c];
        *out++ = left + (static_cast<float>(high[c]) - left) * tap.fraction;
      }
    }
  }

  const PixelView image_;
  const std::vector<Tap> columns_;
  std::array<Row, 2> rows_;  // the one used last, the one before
};

/// Restricted pointers, or a compiler must think that each byte written may be one of the floats.
void blend(const float* __restrict upper, const float* __restrict lower, float fraction,
           std::uint8_t* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = upper[i] + (lower[i] - upper[i]) * fraction;
    // Never negative and below 256, so this rounds.
    // NOLINTNEXTLINE(bugprone-incorrect-roundings)
    out[i] = static_cast<std::uint8_t>(value + 0.5f);
  }
}

/// Pillow's sums, not i * step: rounding would choose other pixels here and there.
std::vector<std::size_t> nearest_positions(int in, int out) {
  std::vector<std::size_t> result;
  result.reserve(static_cast<std::size_t>(out));
  const double step = static_cast<double>(in) / out;
  double position = step * 0.5;
  for (int i = 0; i < out; ++i, position += step) {
    result.push_back(static_cast<std::size_t>(std::clamp(static_cast<int>(position), 0, in - 1)));
  }
  return result;
}

}  // namespace

void resize_bilinear(const PixelView& image, Shape size, std::span<std::uint8_t> dst) {
  assert(size.channels == 3 && dst.size() == size.size());
  if (image.width == size.width && image.height == size.height && image.lies_row_by_row()) {
    std::copy_n(image.first, dst.size(), dst.begin());
    return;
  }
  StretchedRows stretched(image, size.width);
  const std::size_t dst_row = static_cast<std::size_t>(size.width) * 3;
  std::uint8_t* out = dst.data();
  for (const Tap& tap : taps(image.height, size.height)) {
    const float* upper = stretched.row(tap.low);
    const float* lower = stretched.row(tap.high);
    blend(upper, lower, tap.fraction, out, dst_row);
    out += dst_row;
  }
}

void resize_nearest(const PixelView& image, Shape size, std::span<std::uint8_t> dst) {
  assert(size.channels == 3 && dst.size() == size.size());
  const auto rows = nearest_positions(image.height, size.height);
  const auto columns = nearest_positions(image.width, size.width);
  std::uint8_t* out = dst.data();
  for (const std::size_t row : rows) {
    const std::uint8_t* from = image.row(row);
    for (const std::size_t column : columns) {
      out = std::copy_n(from + static_cast<std::ptrdiff_t>(column) * image.right, 3, out);
    }
  }
}

void resize_image(const PixelView& image, Shape size, data::Resize resize,
                  std::span<std::uint8_t> dst) {
  if (resize == data::Resize::nearest) return resize_nearest(image, size, dst);
  resize_bilinear(image, size, dst);
}

}  // namespace cputrain::datasets
