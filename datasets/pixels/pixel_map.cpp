#include "datasets/pixels/pixel_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace cputrain::datasets {
namespace {

constexpr std::int64_t kHalf = PixelMap::kOne / 2;

std::int64_t fixed(double value) { return std::llround(value * PixelMap::kOne); }

std::int64_t times(std::int64_t a, std::int64_t b) { return (a * b + kHalf) >> PixelMap::kBits; }

/// A turn as whole numbers: row = yy * y + yx * x + y0, and so on, in pixels.
struct WholeMap {
  int yy, yx, y0, xy, xx, x0;
};

WholeMap whole_map(data::Turn turn, Shape image) {
  const int bottom = image.height - 1, right = image.width - 1;
  assert((turn != data::Turn::by_90 && turn != data::Turn::by_270) || image.height == image.width);
  switch (turn) {
    case data::Turn::none:
      break;
    case data::Turn::flip_vertical:
      return {-1, 0, bottom, 0, 1, 0};
    case data::Turn::flip_horizontal:
      return {1, 0, 0, 0, -1, right};
    case data::Turn::by_90:
      return {0, 1, 0, -1, 0, right};
    case data::Turn::by_180:
      return {-1, 0, bottom, 0, -1, right};
    case data::Turn::by_270:
      return {0, -1, bottom, 1, 0, 0};
  }
  return {1, 0, 0, 0, 1, 0};
}

/// Where `map` takes the places to which `first` takes a place.
PixelMap through(const WholeMap& first, const PixelMap& map) {
  return {map.yy * first.yy + map.yx * first.xy,
          map.yy * first.yx + map.yx * first.xx,
          map.yy * first.y0 + map.yx * first.x0 + map.y0,
          map.xy * first.yy + map.xx * first.xy,
          map.xy * first.yx + map.xx * first.xx,
          map.xy * first.y0 + map.xx * first.x0 + map.x0};
}

bool is_whole(std::int64_t value) { return value % PixelMap::kOne == 0; }

/// Whether places are whole pixels that all lie in the image, so nothing is computed.
bool moves_pixels(const PixelMap& map, Shape image, const Window& window) {
  for (const std::int64_t value : {map.yy, map.yx, map.y0, map.xy, map.xx, map.x0}) {
    if (!is_whole(value)) return false;
  }
  for (const int y : {window.top, window.bottom - 1}) {
    for (const int x : {window.left, window.right - 1}) {
      const std::int64_t row = map.yy * y + map.yx * x + map.y0;
      const std::int64_t column = map.xy * y + map.xx * x + map.x0;
      if (row < 0 || row > (image.height - 1) * PixelMap::kOne || column < 0 ||
          column > (image.width - 1) * PixelMap::kOne) {
        return false;
      }
    }
  }
  return true;
}

void move_pixels(const std::uint8_t* src, Shape image, const compute::ImageMove& move,
                 std::uint8_t* dst) {
  for (int y = move.top; y < move.bottom; ++y) {
    const std::uint8_t* from =
        src + std::ptrdiff_t{move.first + y * move.down + move.left * move.across} * 3;
    std::uint8_t* to = dst + std::ptrdiff_t{y * image.width + move.left} * 3;
    for (int x = move.left; x < move.right; ++x, from += move.across * 3, to += 3) {
      to[0] = from[0];
      to[1] = from[1];
      to[2] = from[2];
    }
  }
}

/// A place along one axis: the pixel before it, the step to the one after it, and how far the place
/// lies between them in 1/4096.
struct Place {
  std::ptrdiff_t pixel, step;
  std::uint32_t fraction;
};

Place place_at(std::int64_t position, int side) {
  constexpr int kFractionBits = 12, kDropped = PixelMap::kBits - kFractionBits;
  const std::int64_t last = std::int64_t{side - 1} << PixelMap::kBits;
  const std::int64_t inside = std::clamp(position, std::int64_t{0}, last);
  const std::int64_t rounded = (inside + (1 << (kDropped - 1))) >> kDropped;
  const auto fraction = static_cast<std::uint32_t>(rounded & ((1 << kFractionBits) - 1));
  return {static_cast<std::ptrdiff_t>(rounded >> kFractionBits), fraction ? 1 : 0, fraction};
}

/// Weights of 24 bits times bytes fit into 32 bits, half a unit for rounding included.
void blend(const std::uint8_t* src, std::ptrdiff_t width, const Place& row, const Place& column,
           std::uint8_t* to) {
  const std::uint8_t* upper = src + (row.pixel * width + column.pixel) * 3;
  const std::uint8_t* lower = upper + row.step * width * 3;
  const std::ptrdiff_t right = column.step * 3;
  const std::uint32_t down = row.fraction, up = 4096 - down;
  const std::uint32_t east = column.fraction, west = 4096 - east;
  for (std::ptrdiff_t c = 0; c < 3; ++c) {
    const std::uint32_t sum = up * (west * upper[c] + east * upper[right + c]) +
                              down * (west * lower[c] + east * lower[right + c]);
    to[c] = static_cast<std::uint8_t>((sum + (1u << 23)) >> 24);
  }
}

void blend_pixels(const std::uint8_t* src, Shape image, const PixelMap& map, const Window& window,
                  std::uint8_t* dst) {
  const auto width = static_cast<std::ptrdiff_t>(image.width);
  for (int y = window.top; y < window.bottom; ++y) {
    std::int64_t row = map.yy * y + map.yx * window.left + map.y0;
    std::int64_t column = map.xy * y + map.xx * window.left + map.x0;
    std::uint8_t* to = dst + (y * width + window.left) * 3;
    for (int x = window.left; x < window.right; ++x, to += 3) {
      blend(src, width, place_at(row, image.height), place_at(column, image.width), to);
      row += map.yx;
      column += map.xx;
    }
  }
}

}  // namespace

PixelMap warp_map(const Warp& warp, Shape image) {
  constexpr double kDegree = std::numbers::pi / 180;
  const std::int64_t c = fixed(std::cos(warp.rotate * kDegree));
  const std::int64_t s = fixed(std::sin(warp.rotate * kDegree));
  const std::int64_t shear_s = fixed(std::sin(warp.shear * kDegree));
  const std::int64_t shear_c = fixed(std::cos(warp.shear * kDegree));
  const std::int64_t zoom_y = fixed(warp.zoom_y), zoom_x = fixed(warp.zoom_x);
  const std::int64_t down = fixed(warp.shift_y), right = fixed(warp.shift_x);
  PixelMap map;  // [c -s; s c] [1 -shear_s; 0 shear_c] diag(zoom_y, zoom_x)
  map.yy = times(c, zoom_y);
  map.xy = times(s, zoom_y);
  map.yx = times(-times(c, shear_s) - times(s, shear_c), zoom_x);
  map.xx = times(times(c, shear_c) - times(s, shear_s), zoom_x);
  // About the centre, twice which is a whole number of pixels, and the shift turned with the rest.
  const int bottom = image.height - 1, last = image.width - 1;
  map.y0 = (bottom * PixelMap::kOne - map.yy * bottom - map.yx * last) / 2;
  map.x0 = (last * PixelMap::kOne - map.xy * bottom - map.xx * last) / 2;
  map.y0 += times(c, down) - times(s, right);
  map.x0 += times(s, down) + times(c, right);
  return map;
}

PixelMap after_turn(data::Turn turn, const PixelMap& map, Shape image) {
  const WholeMap t = whole_map(turn, image);
  return {t.yy * map.yy + t.yx * map.xy,
          t.yy * map.yx + t.yx * map.xx,
          t.yy * map.y0 + t.yx * map.x0 + t.y0 * PixelMap::kOne,
          t.xy * map.yy + t.xx * map.xy,
          t.xy * map.yx + t.xx * map.xx,
          t.xy * map.y0 + t.xx * map.x0 + t.x0 * PixelMap::kOne};
}

PixelMap then_turn(const PixelMap& map, data::Turn turn, Shape image) {
  return through(whole_map(turn, image), map);
}

PixelMap then_move(const PixelMap& map, int rows, int columns) {
  return through({1, 0, rows, 0, 1, columns}, map);
}

std::optional<compute::ImageMove> as_move(const PixelMap& map, Shape image, const Window& window) {
  if (!moves_pixels(map, image, window)) return std::nullopt;
  const auto pixels = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::int32_t>((rows * image.width + columns) / PixelMap::kOne);
  };
  return compute::ImageMove{.first = pixels(map.y0, map.x0),
                            .down = pixels(map.yy, map.xy),
                            .across = pixels(map.yx, map.xx),
                            .top = window.top,
                            .bottom = window.bottom,
                            .left = window.left,
                            .right = window.right};
}

void map_image(const std::uint8_t* src, Shape image, const PixelMap& map, const Window& window,
               std::span<std::uint8_t> dst) {
  assert(image.channels == 3 && dst.size() == image.size());
  const bool whole = window.top == 0 && window.left == 0 && window.bottom == image.height &&
                     window.right == image.width;
  if (!whole) std::ranges::fill(dst, std::uint8_t{0});
  if (window.top >= window.bottom || window.left >= window.right) return;
  if (const auto move = as_move(map, image, window)) {
    move_pixels(src, image, *move, dst.data());
  } else {
    blend_pixels(src, image, map, window, dst.data());
  }
}

}  // namespace cputrain::datasets
