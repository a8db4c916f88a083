#pragma once

#include <cstdint>

namespace cputrain::cpu {

/// Vectors of one block of channels; the compiler splits them where registers are shorter.
template <int kBlock>
struct Lanes {
  using Float [[gnu::vector_size(kBlock * 4)]] = float;
  using Int [[gnu::vector_size(kBlock * 4)]] = std::int32_t;
  using Byte [[gnu::vector_size(kBlock)]] = std::uint8_t;
  // The same, loaded from and stored to any address.
  using AnyFloat [[gnu::vector_size(kBlock * 4), gnu::aligned(4)]] = float;
  using AnyByte [[gnu::vector_size(kBlock), gnu::aligned(1)]] = std::uint8_t;
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

}  // namespace cputrain::cpu
