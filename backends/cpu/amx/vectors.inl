#pragma once

// Vectors of a block of channels, and their way to factors of tiles. Included by kernels.inl.
#include <cstring>

#include "backends/cpu/amx/kernels.h"
#include "backends/cpu/kernels/lanes.h"
#include "core/casts.h"
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace cputrain::cpu::amx {
namespace {

using Float = Lanes<kBlock>::Float;
using Int = Lanes<kBlock>::Int;
using Word [[gnu::vector_size(64)]] = std::uint32_t;  ///< two factors to a lane
using Half [[gnu::vector_size(32)]] = std::uint16_t;
// The same in memory, where factors are written as one and read as the other.
using WordThere [[gnu::vector_size(64), gnu::may_alias]] = std::uint32_t;
using HalfThere [[gnu::vector_size(32), gnu::may_alias]] = std::uint16_t;

[[gnu::always_inline]] inline Float load(const float* from) {
  return *reinterpret_cast<const Lanes<kBlock>::AnyFloat*>(from);
}
[[gnu::always_inline]] inline void store(float* to, const Float& value) {
  *reinterpret_cast<Lanes<kBlock>::AnyFloat*>(to) = value;
}
/// To a cache line.
[[gnu::always_inline]] inline void store(Bf16* to, const Word& value) {
  *reinterpret_cast<WordThere*>(to) = value;
}

/// Every bit a copy of the highest one: a mask without a comparison, which GCC makes word by word
/// where vectors are longer than registers.
[[gnu::always_inline]] inline void spread_sign(const Word& value, Word& to) {
  to = reinterpret_cast<Word>(reinterpret_cast<Int>(value) >> 31);
}

/// The nearest factor, in the upper halves; ties go to even. As the instruction does it: denormal
/// numbers become zero, NaN a quiet one.
[[gnu::always_inline]] inline void round_up_there(const Float& value, Word& to) {
  const Word bits = reinterpret_cast<Word>(value);
  const Word rounded = bits + 0x7fff + (bits >> 16 & 1);
  Word is_nan, is_small;
  spread_sign(0x7f800000 - (bits & 0x7fffffff), is_nan);
  spread_sign((bits & 0x7f800000) - 1, is_small);
  const Word number = (is_nan & (bits | 0x400000)) | (~is_nan & rounded);
  to = ((is_small & (bits & 0x80000000)) | (~is_small & number)) & 0xffff0000;
}

#ifdef __AVX512BF16__
/// The same by fewer instructions.
[[gnu::always_inline]] inline void take_factor(const Float& value, Word& to) {
  const auto halves = reinterpret_cast<Half>(_mm512_cvtneps_pbh(reinterpret_cast<__m512>(value)));
  to = __builtin_convertvector(halves, Word) << 16;
}
#else
[[gnu::always_inline]] inline void take_factor(const Float& value, Word& to) {
  round_up_there(value, to);
}
#endif

/// What the nearest factor leaves of numbers, exactly; nothing of those whose factor is no number.
[[gnu::always_inline]] inline void take_rest(Float& value) {
  Word factor;
  take_factor(value, factor);
  const Float rest = value - reinterpret_cast<Float>(factor);
  Word has_no_rest;
  spread_sign(0x7f7fffff - (factor & 0x7f800000), has_no_rest);
  value = reinterpret_cast<Float>(reinterpret_cast<Word>(rest) & ~has_no_rest);
}
/// What is left for factor kPart of a number.
template <int kPart>
[[gnu::always_inline]] inline void take_part(Float& value) {
#pragma GCC unroll 2
  for (int i = 0; i < kPart; ++i) take_rest(value);
}

template <int kNumber>
struct Part {
  static constexpr int number = kNumber;
};
/// Calls f with each Part of a number.
template <class F>
[[gnu::always_inline]] inline void for_parts(int parts, const F& f) {
  f(Part<0>{});
  if (parts == 1) return;
  f(Part<1>{});
  f(Part<2>{});
}

#ifdef __AVX512BF16__

/// The first vector's factors, then the second's.
[[gnu::always_inline]] inline void store_factors(const Float& first, const Float& second,
                                                 Bf16* to) {
  _mm512_store_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(
                             reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first))));
}

/// Factors side by side: the first vector's in the lower halves of lanes.
[[gnu::always_inline]] inline void to_pairs(const Float& low, const Float& high, Word& to) {
  constexpr Half kFirst{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Word order = __builtin_convertvector(kFirst, Word) * 0x10001u + 0x100000u;
  to = reinterpret_cast<Word>(_mm512_permutexvar_epi16(
      reinterpret_cast<__m512i>(order),
      reinterpret_cast<__m512i>(
          _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(high), reinterpret_cast<__m512>(low)))));
}

#else

[[gnu::always_inline]] inline void store_factors(const Float& first, const Float& second,
                                                 Bf16* to) {
  Word a, b;
  round_up_there(first, a);
  round_up_there(second, b);
  reinterpret_cast<HalfThere*>(to)[0] = __builtin_convertvector(a >> 16, Half);
  reinterpret_cast<HalfThere*>(to)[1] = __builtin_convertvector(b >> 16, Half);
}

[[gnu::always_inline]] inline void to_pairs(const Float& low, const Float& high, Word& to) {
  Word a, b;
  round_up_there(low, a);
  round_up_there(high, b);
  to = a >> 16 | b;
}

#endif

#ifdef __AVX512F__

/// Exchanges rows and columns: blocks of 1, 2, 4, 8 of them, pairs of rows at a time.
[[gnu::always_inline]] inline void transpose(Word (&rows)[16]) {
#pragma GCC unroll 4
  for (int step = 1; step < 16; step *= 2) {
    Word low{}, high{};
    for (int i = 0; i < 16; ++i) {
      const bool swapped = (i & step) != 0;
      low[i] = static_cast<std::uint32_t>(swapped ? 16 + i - step : i);
      high[i] = static_cast<std::uint32_t>(swapped ? 16 + i : i + step);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i & step) continue;
      const Word a = rows[i], b = rows[i + step];
      rows[i] = __builtin_shuffle(a, b, low);
      rows[i + step] = __builtin_shuffle(a, b, high);
    }
  }
}

#else

/// The same in memory: a shuffle of 16 words is dozens of instructions here, and copies of them in
/// each caller took most of the time to compile.
[[gnu::noinline]] inline void transpose(Word (&rows)[16]) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) {
      const std::uint32_t word = rows[i][j];
      rows[i][j] = rows[j][i];
      rows[j][i] = word;
    }
  }
}

#endif

/// What counts of a row of a map, or of gradients, for one part of its factors.
template <int kPart>
class Row {
 public:
  /// Row y of what `map` points to.
  [[gnu::always_inline]] Row(const MapRows& map, int y)
      : map_(map), at_(to_size(y) * to_size(map.width)) {}

  /// Zeros in a block that only fills a pair.
  [[gnu::always_inline]] void value(int block, int x, Float& to) const {
    if (block >= map_.blocks) {
      to = Float{};
      return;
    }
    const std::size_t i = index(block, x);
    to = load(map_.values + i);
    if (map_.alive) to = load(map_.alive + i) > 0 ? to : Float{};
    take_part<kPart>(to);
  }
  /// A window's gradient, and at each of its places what goes there.
  [[gnu::always_inline]] void window(int block, int x, Float& all, Float (&places)[4]) const {
    value(block, x, all);
    if (block >= map_.blocks) {
      for (Float& place : places) place = all;
      return;
    }
    Int winner;
    load_bytes<kBlock>(map_.winners + index(block, x), winner);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) places[i] = winner == i ? all : Float{};
  }

 private:
  [[gnu::always_inline]] std::size_t index(int block, int x) const {
    return to_size(block) * map_.plane + (at_ + to_size(x)) * kBlock;
  }

  const MapRows& map_;
  std::size_t at_;
};

// ---- the kernel of 2 x 2 tiles ----

/// Tiles 0 to 3 += the products of steps at(0) to at(count - 1), each a[0] b, a[0] b', a[1] b and
/// a[1] b', where b' lies `next` behind b. Calls beside(i) behind step i, for work that the
/// processor may do while tiles multiply.
template <class Tiles, class At, class Beside>
[[gnu::always_inline]] inline void add_products(Tiles& tiles, std::size_t count, std::size_t next,
                                                const At& at, const Beside& beside) {
  for (std::size_t i = 0; i < count; ++i) {
    const Step step = at(i);
    tiles.template load<4>(step.a[0]);
    tiles.template load<6>(step.b);
    tiles.template multiply_add<0, 4, 6>();
    tiles.template load<7>(step.b + next);
    tiles.template multiply_add<1, 4, 7>();
    tiles.template load<5>(step.a[1]);
    tiles.template multiply_add<2, 5, 6>();
    tiles.template multiply_add<3, 5, 7>();
    beside(i);
  }
}
/// The step, whose factors lie so many further.
[[gnu::always_inline]] inline Step shifted(const Step& step, std::size_t a, std::size_t b) {
  return {{step.a[0] + a, step.a[1] + a}, step.b + b};
}

template <class Tiles>
[[gnu::always_inline]] inline void zero_sums(Tiles& tiles) {
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
}
template <class Tiles>
[[gnu::always_inline]] inline void load_sums(Tiles& tiles, const float* from) {
  tiles.template load<0>(from);
  tiles.template load<1>(from + kSums);
  tiles.template load<2>(from + 2 * kSums);
  tiles.template load<3>(from + 3 * kSums);
}
template <class Tiles>
[[gnu::always_inline]] inline void store_sums(Tiles& tiles, float* to) {
  tiles.template store<0>(to);
  tiles.template store<1>(to + kSums);
  tiles.template store<2>(to + 2 * kSums);
  tiles.template store<3>(to + 3 * kSums);
}

}  // namespace
}  // namespace cputrain::cpu::amx
