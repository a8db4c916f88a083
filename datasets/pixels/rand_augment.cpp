#include "datasets/pixels/rand_augment.h"

#include <cmath>
#include <vector>

#include "core/casts.h"
#include "datasets/pixels/colour.h"
#include "datasets/pixels/pixel_map.h"
#include "datasets/pixels/tones.h"

namespace cputrain::datasets {
namespace {

constexpr std::uint32_t kRandWords = 16;  // in the stream, from here on: before it other kinds'

/// At full magnitude.
constexpr double kShear = 0.3, kTranslate = 150.0 / 331, kDegrees = 30, kFactor = 0.9;

/// `part`: of the full magnitude; `sign`: 1 or -1, for what has two sides.
double amount_of(RandKind kind, double part, double sign) {
  switch (kind) {
    case RandKind::shear_x:
    case RandKind::shear_y:
      return sign * part * kShear;
    case RandKind::translate_x:
    case RandKind::translate_y:
      return sign * part * kTranslate;
    case RandKind::rotate:
      return sign * part * kDegrees;
    case RandKind::brightness:
    case RandKind::saturation:
    case RandKind::contrast:
    case RandKind::sharpness:
      return 1 + sign * part * kFactor;
    case RandKind::posterize:
      return 8 - std::round(4 * part);
    case RandKind::solarize:
      return std::round(255 * (1 - part));
    case RandKind::identity:
    case RandKind::stretch:
    case RandKind::equalize:
      break;
  }
  return 0;
}

std::int64_t in_map_units(double value) { return std::llround(value * PixelMap::kOne); }

/// As torchvision: an image is sheared about its top left corner, half a pixel from the first
/// pixel's centre, and turned about its own. It is moved by whole pixels; the rest is cut off.
PixelMap map_of(const RandStep& step, Shape image) {
  const auto whole_pixels = [&](int side) {
    return static_cast<std::int64_t>(step.amount * side) * PixelMap::kOne;
  };
  PixelMap map;
  switch (step.kind) {
    case RandKind::shear_x:
      map.xy = in_map_units(step.amount);
      map.x0 = map.xy / 2;
      break;
    case RandKind::shear_y:
      map.yx = in_map_units(step.amount);
      map.y0 = map.yx / 2;
      break;
    case RandKind::translate_x:
      map.x0 = -whole_pixels(image.width);
      break;
    case RandKind::translate_y:
      map.y0 = -whole_pixels(image.height);
      break;
    default:
      return warp_map({.rotate = step.amount}, image);
  }
  return map;
}

void warp_in_place(const RandStep& step, Shape image, std::span<std::uint8_t> rgb) {
  const std::vector<std::uint8_t> src(rgb.begin(), rgb.end());
  map_image(src.data(), image, map_of(step, image), {0, image.height, 0, image.width}, rgb);
}

void apply(const RandStep& step, Shape image, std::span<std::uint8_t> rgb) {
  switch (step.kind) {
    case RandKind::identity:
      return;
    case RandKind::shear_x:
    case RandKind::shear_y:
    case RandKind::translate_x:
    case RandKind::translate_y:
    case RandKind::rotate:
      return warp_in_place(step, image, rgb);
    case RandKind::brightness:
      return change_colour(rgb, {.brightness = step.amount});
    case RandKind::saturation:
      return change_colour(rgb, {.saturation = step.amount});
    case RandKind::contrast:
      return change_colour(rgb, {.contrast = step.amount});
    case RandKind::sharpness:
      return sharpen(rgb, image, step.amount);
    case RandKind::posterize:
      return posterize(rgb, to_int(step.amount));
    case RandKind::solarize:
      return solarize(rgb, to_int(step.amount));
    case RandKind::stretch:
      return stretch_contrast(rgb);
    case RandKind::equalize:
      return equalize(rgb);
  }
}

}  // namespace

RandSteps choose_rand_steps(int steps, int magnitude, const RandomStream& stream) {
  RandSteps chosen{};
  const double part = to_double(magnitude) / kMostMagnitude;
  for (int i = 0; i < steps; ++i) {
    const auto words = stream.at(kRandWords + static_cast<std::uint32_t>(i));
    const auto kind = static_cast<RandKind>(below(words[0], kRandKinds));
    const double sign = below(words[1], 2) == 1 ? 1 : -1;
    chosen[to_size(i)] = {kind, amount_of(kind, part, sign)};
  }
  return chosen;
}

void apply(const RandSteps& steps, Shape image, std::span<std::uint8_t> rgb) {
  for (const RandStep& step : steps) apply(step, image, rgb);
}

}  // namespace cputrain::datasets
