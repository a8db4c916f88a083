#include "datasets/pixels/tones.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

constexpr std::size_t kRgb = 3;
using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::int64_t, 256>;

/// table_of(histogram) of each channel says what becomes of its bytes.
template <class F>
void map_channels(std::span<std::uint8_t> rgb, const F& table_of) {
  for (std::size_t c = 0; c < kRgb; ++c) {
    Histogram histogram{};
    for (std::size_t i = c; i < rgb.size(); i += kRgb) ++histogram[rgb[i]];
    const Table table = table_of(histogram);
    for (std::size_t i = c; i < rgb.size(); i += kRgb) rgb[i] = table[rgb[i]];
  }
}

template <class F>
Table table_by(const F& value) {
  Table table{};
  for (int i = 0; i < 256; ++i) {
    table[to_size(i)] = static_cast<std::uint8_t>(std::clamp(value(i), 0, 255));
  }
  return table;
}

int first_of(const Histogram& histogram) {
  const auto found = std::ranges::find_if(histogram, [](std::int64_t n) { return n > 0; });
  return to_int(found - histogram.begin());
}

int last_of(const Histogram& histogram) {
  int last = 255;
  while (last > 0 && histogram[to_size(last)] == 0) --last;
  return last;
}

Table contrast_table(const Histogram& histogram) {
  const int low = first_of(histogram), high = last_of(histogram);
  if (high <= low) return table_by([](int i) { return i; });
  const double scale = 255.0 / (high - low), offset = -low * scale;
  return table_by([&](int i) { return to_int(i * scale + offset); });
}

Table equal_table(const Histogram& histogram) {
  std::int64_t all = 0;
  for (const std::int64_t n : histogram) all += n;
  const int last = last_of(histogram);
  const std::int64_t step = (all - histogram[to_size(last)]) / 255;
  if (step == 0 || first_of(histogram) == last) return table_by([](int i) { return i; });
  std::int64_t before = step / 2;
  return table_by([&](int i) {
    const auto value = to_int(std::min<std::int64_t>(before / step, 255));
    before += histogram[to_size(i)];
    return value;
  });
}

}  // namespace

void solarize(std::span<std::uint8_t> rgb, int threshold) {
  for (std::uint8_t& value : rgb) {
    if (value >= threshold) value = static_cast<std::uint8_t>(255 - value);
  }
}

void posterize(std::span<std::uint8_t> rgb, int bits) {
  const int mask = 255 & ~((1 << (8 - bits)) - 1);
  for (std::uint8_t& value : rgb) value = static_cast<std::uint8_t>(value & mask);
}

void stretch_contrast(std::span<std::uint8_t> rgb) { map_channels(rgb, contrast_table); }

void equalize(std::span<std::uint8_t> rgb) { map_channels(rgb, equal_table); }

void sharpen(std::span<std::uint8_t> rgb, Shape image, double factor) {
  constexpr std::int64_t kOne = 1 << 16;
  const auto weight = static_cast<std::int64_t>(std::llround(factor * kOne));
  const std::vector<std::uint8_t> src(rgb.begin(), rgb.end());
  const std::size_t row = to_size(image.width) * kRgb;
  for (int y = 1; y + 1 < image.height; ++y) {
    for (int x = 1; x + 1 < image.width; ++x) {
      for (std::size_t c = 0; c < kRgb; ++c) {
        const std::size_t i = to_size(y) * row + to_size(x) * 3 + c;
        int sum = 4 * src[i];  // SMOOTH of Pillow: ones, and 5 in the middle
        for (const std::size_t k : {i - row, i, i + row}) {
          sum += src[k - kRgb] + src[k] + src[k + kRgb];
        }
        const std::int64_t smooth = (2 * sum + 13) / 26;
        const std::int64_t value = smooth * kOne + weight * (src[i] - smooth);
        rgb[i] =
            static_cast<std::uint8_t>(std::clamp<std::int64_t>((value + kOne / 2) >> 16, 0, 255));
      }
    }
  }
}

}  // namespace cputrain::datasets
