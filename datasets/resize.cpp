#include "datasets/resize.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

namespace cputrain {
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

/// One source row brought to the new width.
void stretch_row(const std::uint8_t* src, std::span<const Tap> columns, std::vector<float>& dst) {
  float* out = dst.data();
  for (const Tap& tap : columns) {
    const std::uint8_t* low = src + tap.low * 3;
    const std::uint8_t* high = src + tap.high * 3;
    for (int c = 0; c < 3; ++c) {
      const float left = low[c];
      *out++ = left + (static_cast<float>(high[c]) - left) * tap.fraction;
    }
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

void resize_bilinear(const Picture& picture, Shape image, std::span<std::uint8_t> dst) {
  assert(image.channels == 3 && dst.size() == image.size());
  if (picture.width == image.width && picture.height == image.height) {
    std::ranges::copy(picture.rgb, dst.begin());
    return;
  }
  const std::vector<Tap> rows = taps(picture.height, image.height);
  const std::vector<Tap> columns = taps(picture.width, image.width);
  const std::size_t src_row = static_cast<std::size_t>(picture.width) * 3;
  const std::size_t dst_row = static_cast<std::size_t>(image.width) * 3;
  std::vector<float> upper(dst_row), lower(dst_row);
  std::uint8_t* out = dst.data();
  for (const Tap& tap : rows) {
    stretch_row(picture.rgb.data() + tap.low * src_row, columns, upper);
    stretch_row(picture.rgb.data() + tap.high * src_row, columns, lower);
    for (std::size_t i = 0; i < dst_row; ++i) {
      const float value = upper[i] + (lower[i] - upper[i]) * tap.fraction;
      // Never negative and below 256, so this rounds.
      // NOLINTNEXTLINE(bugprone-incorrect-roundings)
      *out++ = static_cast<std::uint8_t>(value + 0.5f);
    }
  }
}

void resize_nearest(const Picture& picture, Shape image, std::span<std::uint8_t> dst) {
  assert(image.channels == 3 && dst.size() == image.size());
  const auto rows = nearest_positions(picture.height, image.height);
  const auto columns = nearest_positions(picture.width, image.width);
  const std::size_t src_row = static_cast<std::size_t>(picture.width) * 3;
  std::uint8_t* out = dst.data();
  for (const std::size_t row : rows) {
    const std::uint8_t* from = picture.rgb.data() + row * src_row;
    for (const std::size_t column : columns) out = std::copy_n(from + column * 3, 3, out);
  }
}

void resize_picture(const Picture& picture, Shape image, Resize resize,
                    std::span<std::uint8_t> dst) {
  if (resize == Resize::nearest) return resize_nearest(picture, image, dst);
  resize_bilinear(picture, image, dst);
}

}  // namespace cputrain
