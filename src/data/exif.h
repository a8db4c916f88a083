#pragma once

#include <cstdint>

#include "core/names.h"

namespace cputrain::data {

/// Whether a photograph is read as viewers show it: cameras store what their sensor saw, and how to
/// turn it in an EXIF tag.
enum class Exif { apply, ignore };
constexpr auto names(Exif) {
  return std::to_array<Name<Exif>>({{Exif::apply, "apply"}, {Exif::ignore, "ignore"}});
}

/// Ways to turn an image that move pixels and compute none. Turns are anticlockwise. These six, in
/// this order, are what the potato chips program makes of each original: "original, vertical flip,
/// horizontal flip, three 90-degree rotations".
enum class Turn : std::uint8_t { none, flip_vertical, flip_horizontal, by_90, by_180, by_270 };
constexpr std::uint32_t kTurns = 6;

/// Whether each image of the data becomes six samples, one a Turn. `six`: split into training and
/// validation first, so that no image is in both; `six_leaky`: split afterwards, as the potato
/// chips program does, with turns of training images in validation.
enum class Expand { none, six, six_leaky };
constexpr auto names(Expand) {
  return std::to_array<Name<Expand>>(
      {{Expand::none, "none"}, {Expand::six, "six"}, {Expand::six_leaky, "six-leaky"}});
}

}  // namespace cputrain::data
