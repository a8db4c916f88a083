#pragma once

#include <cstdint>

namespace cputrain {

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

}  // namespace cputrain
