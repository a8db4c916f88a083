#pragma once

#include "backends/cpu/kernels/lanes.h"

namespace {

/// Blocks of 8 channels. The compiler finds the instructions that collect the lanes' signs.
struct Isa {
  static constexpr int kBlock = 8;
  using Float = cputrain::cpu::Lanes<kBlock>::Float;
  using Int = cputrain::cpu::Lanes<kBlock>::Int;

  static Int load_bytes(const std::uint8_t* from) {
    Int bytes;
    cputrain::cpu::load_bytes<kBlock>(from, bytes);
    return bytes;
  }
  static unsigned not_zero(const Float& values) { return bits(values != 0); }
  static unsigned positive(const Float& values) { return bits(values > 0); }
  static unsigned equal(const Int& values, int number) { return bits(values == number); }
  static Float add_where(unsigned set, Float sums, const Float& values) {
    for (int i = 0; i < kBlock; ++i) sums[i] += set >> i & 1 ? values[i] : 0;
    return sums;
  }
  static void compress(unsigned set, const Float& values, const Int& offsets, float* to_values,
                       unsigned* to_offsets) {
    for (; set; set &= set - 1) {
      const int lane = __builtin_ctz(set);
      *to_values++ = values[lane];
      *to_offsets++ = static_cast<unsigned>(offsets[lane]);
    }
  }

 private:
  static unsigned bits(const Int& truth) {
    unsigned set = 0;
    for (int i = 0; i < kBlock; ++i) set |= static_cast<unsigned>(truth[i] & 1) << i;
    return set;
  }
};

}  // namespace
