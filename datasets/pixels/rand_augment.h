#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/random/random.h"
#include "core/shape.h"

namespace cputrain::datasets {

/// What RandAugment draws from: the 14 of Cubuk et al., "RandAugment" (2019), with the ranges of
/// torchvision's transform of that name.
enum class RandKind {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  saturation,
  contrast,
  sharpness,
  posterize,
  solarize,
  stretch,
  equalize
};
inline constexpr std::uint32_t kRandKinds = 14;
inline constexpr int kMostRandSteps = 8;
inline constexpr int kMostMagnitude = 10;

/// One of them, and how strong: a part of the size, degrees, a factor, bits, a threshold.
struct RandStep {
  RandKind kind = RandKind::identity;
  double amount = 0;
  bool operator==(const RandStep&) const = default;
};
using RandSteps = std::array<RandStep, kMostRandSteps>;  ///< in their order, then identities

/// So many steps, each of any kind and with either sign. f(stream).
RandSteps choose_rand_steps(int steps, int magnitude, const RandomStream& stream);

/// In place. Places between pixels are bilinear, and those outside of the image repeat its edges,
/// as in all warps here.
void apply(const RandSteps&, Shape image, std::span<std::uint8_t> rgb);

}  // namespace cputrain::datasets
