#pragma once

namespace cputrain {

/// A number for red, green and blue; a single one stands for all three. Without member functions
/// that kernels would call: a linker might take those from a file for one instruction set.
struct PerColour {
  float of[3];

  constexpr PerColour(float all) : of{all, all, all} {}
  constexpr PerColour(float red, float green, float blue) : of{red, green, blue} {}
  bool operator==(const PerColour&) const = default;
};

}  // namespace cputrain
