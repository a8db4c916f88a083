#pragma once

#include "backends/cpu/lanes.h"

namespace {

/// Blocks of 8 channels, compressed lane by lane without a branch.
struct Isa {
  static constexpr int kBlock = 8;
  using Float = cputrain::Lanes<kBlock>::Float;
  using Int = cputrain::Lanes<kBlock>::Int;

  static unsigned bits(const Int& keep) {
    unsigned mask = 0;
    for (int i = 0; i < kBlock; ++i) mask |= static_cast<unsigned>(keep[i] & 1) << i;
    return mask;
  }
  static int compress(const Int& keep, const Float& values, const Int& offsets, float* to_values,
                      unsigned* to_offsets) {
    int count = 0;
    for (int i = 0; i < kBlock; ++i) {
      to_values[count] = values[i];
      to_offsets[count] = static_cast<unsigned>(offsets[i]);
      count += keep[i] & 1;
    }
    return count;
  }
};

}  // namespace
