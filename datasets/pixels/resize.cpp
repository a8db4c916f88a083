#include "datasets/pixels/resize.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "core/casts.h"
#include "datasets/pixels/convolve.h"
#include "datasets/pixels/filter_taps.h"
#include "datasets/pixels/fit.h"

namespace cputrain::datasets {
namespace {

/// The two source pixels of a destination pixel along one axis, and how far it lies between them.
struct Tap {
  std::size_t low, high;
  float fraction;
};

std::vector<Tap> plain_taps(const AxisFit& axis) {
  std::vector<Tap> result;
  result.reserve(to_size(axis.count));
  const float scale = static_cast<float>(axis.in) / static_cast<float>(axis.resized);
  for (int i = 0; i < axis.count; ++i) {
    const float position = (static_cast<float>(axis.first + i) + 0.5f) * scale - 0.5f;
    const float below = std::floor(position);
    const int low = to_int(below), last = axis.in - 1;
    result.push_back({to_size(std::clamp(low, 0, last)), to_size(std::clamp(low + 1, 0, last)),
                      position - below});
  }
  return result;
}

/// Source rows brought to the new width. The two that were used last are kept, since neighbouring
/// rows of the new image often lie between the same ones.
class StretchedRows {
 public:
  StretchedRows(const PixelView& image, const AxisFit& columns)
      : image_(image), columns_(plain_taps(columns)) {
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

void resize_plain(const PixelView& image, const ImageFit& fit, std::uint8_t* dst,
                  std::size_t stride) {
  StretchedRows stretched(image, fit.columns);
  const std::size_t bytes = to_size(fit.columns.count) * 3;
  for (const Tap& tap : plain_taps(fit.rows)) {
    const float* upper = stretched.row(tap.low);
    const float* lower = stretched.row(tap.high);
    blend(upper, lower, tap.fraction, dst, bytes);
    dst += stride;
  }
}

/// Pillow's sums, not i * step: rounding would choose other pixels here and there.
std::vector<std::size_t> nearest_positions(const AxisFit& axis) {
  std::vector<std::size_t> result;
  result.reserve(to_size(axis.count));
  const double step = to_double(axis.in) / to_double(axis.resized);
  double position = step * 0.5;
  for (std::int64_t i = 0; i < axis.first + axis.count; ++i, position += step) {
    if (i < axis.first) continue;
    result.push_back(to_size(std::clamp(to_int(position), 0, axis.in - 1)));
  }
  return result;
}

void resize_nearest(const PixelView& image, const ImageFit& fit, std::uint8_t* dst,
                    std::size_t stride) {
  const auto columns = nearest_positions(fit.columns);
  for (const std::size_t row : nearest_positions(fit.rows)) {
    const std::uint8_t* from = image.row(row);
    std::uint8_t* to = dst;
    for (const std::size_t column : columns) {
      to = std::copy_n(from + static_cast<std::ptrdiff_t>(column) * image.right, 3, to);
    }
    dst += stride;
  }
}

}  // namespace

void resize_image(const PixelView& image, Shape size, const data::Resizing& resizing,
                  std::span<std::uint8_t> dst) {
  assert(size.channels == 3 && dst.size() == size.size());
  const ImageFit fit = fit_image(image.height, image.width, size, resizing.fit);
  if (fit.rows.is_identity() && fit.columns.is_identity() && image.lies_row_by_row() &&
      !fit.leaves_bars(size)) {
    std::copy_n(image.first, dst.size(), dst.begin());
    return;
  }
  if (fit.leaves_bars(size)) std::ranges::fill(dst, std::uint8_t{0});
  const std::size_t stride = to_size(size.width) * 3;
  std::uint8_t* const first =
      dst.data() + to_size(fit.rows.at) * stride + to_size(fit.columns.at) * 3;
  switch (resizing.way) {
    case data::Resize::nearest:
      return resize_nearest(image, fit, first, stride);
    case data::Resize::bilinear_plain:
      return resize_plain(image, fit, first, stride);
    case data::Resize::area:
    case data::Resize::bilinear:
    case data::Resize::bicubic:
      return convolve(image, filter_taps(fit.rows, resizing.way),
                      filter_taps(fit.columns, resizing.way), first, stride);
  }
}

}  // namespace cputrain::datasets
