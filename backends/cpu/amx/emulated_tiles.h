#pragma once

#include <immintrin.h>

#include <cstring>

#include "backends/cpu/amx/tiles.h"

namespace cputrain::cpu::amx {
namespace {  // each file that includes this has a copy for its instruction set

/// The same bits as tdpbf16ps, but for the payloads of NaN. Denormal numbers are left to the
/// processor: its vector instructions treat them as tiles do once MXCSR asks for it. Without FMA
/// instructions this is slow.
class EmulatedTiles {
 public:
  EmulatedTiles() { std::memset(tiles_, 0, sizeof tiles_); }

  template <int kTile>
  void zero() {
    std::memset(tiles_[kTile], 0, sizeof tiles_[kTile]);
  }
  template <int kTile>
  void load(const void* from) {
    std::memcpy(tiles_[kTile], from, sizeof tiles_[kTile]);
  }
  template <int kTile>
  void store(void* to) const {
    std::memcpy(to, tiles_[kTile], sizeof tiles_[kTile]);
  }
  template <int kC, int kA, int kB>
  void multiply_add() {
    constexpr unsigned kNoDenormals = 0x8040, kMasksOfExceptions = 0x1f80;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(kMasksOfExceptions | kNoDenormals);  // rounds to the nearest
    add_products(tiles_[kA], tiles_[kB], tiles_[kC]);
    _mm_setcsr(before);
  }

 private:
  using Words = std::uint32_t[16][16];

  static float even(std::uint32_t pair) { return __builtin_bit_cast(float, pair << 16); }
  static float odd(std::uint32_t pair) { return __builtin_bit_cast(float, pair & 0xffff0000u); }

  /// Not inlined, so that nothing of it is computed before MXCSR is set, or behind that.
  [[gnu::noinline]] static void add_products(const Words& a, const Words& b, Words& c) {
    for (int m = 0; m < 16; ++m) {
      float evens[16] = {}, odds[16] = {};
      for (int k = 0; k < 16; ++k) {
        const float of_even = even(a[m][k]), of_odd = odd(a[m][k]);
        for (int n = 0; n < 16; ++n) {
          evens[n] = __builtin_fmaf(of_even, even(b[k][n]), evens[n]);
          odds[n] = __builtin_fmaf(of_odd, odd(b[k][n]), odds[n]);
        }
      }
      for (int n = 0; n < 16; ++n) {
        const float sum = __builtin_bit_cast(float, c[m][n]) + (evens[n] + odds[n]);
        c[m][n] = __builtin_bit_cast(std::uint32_t, sum);
      }
    }
  }

  alignas(64) std::uint32_t tiles_[kTiles][16][16];
};

}  // namespace
}  // namespace cputrain::cpu::amx
