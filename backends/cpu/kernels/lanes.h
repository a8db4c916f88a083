#pragma once

#include <cstdint>

#include "backends/cpu/kernels/bf16.h"

namespace cputrain::cpu {

/// Vectors of one block of channels; the compiler splits them where registers are shorter. They are
/// handed over by reference: how a function returns one depends on the instruction set.
template <int kBlock>
struct Lanes {
  using Float [[gnu::vector_size(kBlock * 4)]] = float;
  using Double [[gnu::vector_size(kBlock * 8)]] = double;
  using Int [[gnu::vector_size(kBlock * 4)]] = std::int32_t;
  using Byte [[gnu::vector_size(kBlock)]] = std::uint8_t;
  // The same, loaded from and stored to any address.
  using AnyFloat [[gnu::vector_size(kBlock * 4), gnu::aligned(4)]] = float;
  using AnyDouble [[gnu::vector_size(kBlock * 8), gnu::aligned(8)]] = double;
  using AnyByte [[gnu::vector_size(kBlock), gnu::aligned(1)]] = std::uint8_t;
  // The bits of 16-bit numbers, two to a float, and of floats.
  using Word [[gnu::vector_size(kBlock * 4)]] = std::uint32_t;
  using Half [[gnu::vector_size(kBlock * 2)]] = std::uint16_t;
  using Halves [[gnu::vector_size(kBlock * 4)]] = std::uint16_t;
  using AnyHalf [[gnu::vector_size(kBlock * 2), gnu::aligned(2)]] = std::uint16_t;
};

/// A single channel is no vector.
template <>
struct Lanes<1> {
  using Float = float;
  using Double = double;
  using AnyFloat = float;
  using AnyDouble = double;
};

/// Bytes, one to each lane; by way of 16 bits, because from 8 to 32 at once GCC 12 goes lane by
/// lane. Always inlined, since it is compiled for several instruction sets.
template <int kBlock>
[[gnu::always_inline]] inline void load_bytes(const std::uint8_t* from,
                                              typename Lanes<kBlock>::Int& to) {
  using Short [[gnu::vector_size(kBlock * 2)]] = std::int16_t;
  const auto bytes = *reinterpret_cast<const typename Lanes<kBlock>::AnyByte*>(from);
  to = __builtin_convertvector(__builtin_convertvector(bytes, Short), typename Lanes<kBlock>::Int);
}

/// Where a value takes the place of the largest so far: the first of equal numbers stays, and NaN
/// wins over all, as in PyTorch. Always inlined, as above.
template <int kBlock>
[[gnu::always_inline]] inline void find_better(const typename Lanes<kBlock>::Float& value,
                                               const typename Lanes<kBlock>::Float& best,
                                               typename Lanes<kBlock>::Int& better) {
  better = (value > best) | (value != value);
}

/// The maximum of a window and its place, lane by lane. Always inlined, as above.
template <int kBlock>
[[gnu::always_inline]] inline void find_maximum(const typename Lanes<kBlock>::Float (&window)[4],
                                                typename Lanes<kBlock>::Float& best,
                                                typename Lanes<kBlock>::Int& winner) {
  using Int = typename Lanes<kBlock>::Int;
  best = window[0];
  winner = Int{};
  for (int i = 1; i < 4; ++i) {
    Int better;
    find_better<kBlock>(window[i], best, better);
    best = better ? window[i] : best;
    winner = better ? Int{} + i : winner;
  }
}

/// Lanes at any address. Always inlined, as all below: compiled for several instruction sets.
template <int kBlock>
[[gnu::always_inline]] inline auto at(const float* p) -> const typename Lanes<kBlock>::AnyFloat& {
  return *reinterpret_cast<const typename Lanes<kBlock>::AnyFloat*>(p);
}
template <int kBlock>
[[gnu::always_inline]] inline auto at(float* p) -> typename Lanes<kBlock>::AnyFloat& {
  return *reinterpret_cast<typename Lanes<kBlock>::AnyFloat*>(p);
}
template <int kBlock>
[[gnu::always_inline]] inline auto at(double* p) -> typename Lanes<kBlock>::AnyDouble& {
  return *reinterpret_cast<typename Lanes<kBlock>::AnyDouble*>(p);
}

/// Numbers of a map as floats, and back.
template <int kBlock>
[[gnu::always_inline]] inline void load(const float* from, typename Lanes<kBlock>::Float& to) {
  to = at<kBlock>(from);
}
/// A zero below each number, by one instruction: GCC 12 takes five for a conversion.
template <int kBlock>
[[gnu::always_inline]] inline void load(const Bf16* from, typename Lanes<kBlock>::Float& to) {
  static_assert(kBlock == 16);
  using L = Lanes<kBlock>;
  const typename L::Half bits = *reinterpret_cast<const typename L::AnyHalf*>(from), zeros{};
  const typename L::Halves halves =
      __builtin_shufflevector(zeros, bits, 0, 16, 0, 17, 0, 18, 0, 19, 0, 20, 0, 21, 0, 22, 0, 23,
                              0, 24, 0, 25, 0, 26, 0, 27, 0, 28, 0, 29, 0, 30, 0, 31);
  to = reinterpret_cast<typename L::Float>(halves);
}
template <int kBlock>
[[gnu::always_inline]] inline void store(const typename Lanes<kBlock>::Float& from, float* to) {
  at<kBlock>(to) = from;
}
/// As rounded_bits().
template <int kBlock>
[[gnu::always_inline]] inline void store(const typename Lanes<kBlock>::Float& from, Bf16* to) {
  using L = Lanes<kBlock>;
  const auto bits = reinterpret_cast<typename L::Word>(from);
  const typename L::Word nearest = bits + 0x7fffU + (bits >> 16 & 1U);
  const typename L::Word chosen = from == from ? nearest : bits | 0x400000U;
  *reinterpret_cast<typename L::AnyHalf*>(to) =
      __builtin_convertvector(chosen >> 16, typename L::Half);
}

template <int kBlock>
[[gnu::always_inline]] inline void widen(const typename Lanes<kBlock>::Float& narrow,
                                         typename Lanes<kBlock>::Double& wide) {
  if constexpr (kBlock == 1) {
    wide = static_cast<double>(narrow);
  } else {
    wide = __builtin_convertvector(narrow, typename Lanes<kBlock>::Double);
  }
}

}  // namespace cputrain::cpu
