#pragma once

#include <cstdint>

#include "core/host_device.h"

/// Random numbers as functions that the host shares with a GPU's kernels, without containers;
/// random.h describes what they are for.
namespace cputrain {

struct RandomWords {
  std::uint32_t x, y, z, w;
};

/// A seed in two words. Kernels for GPUs need fewer registers with them in one struct.
struct RandomKey {
  std::uint32_t x, y;
};

/// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random
/// Numbers: As Easy as 1, 2, 3" (SC11): four random words are a pure function of a counter and a
/// key. Randomness is a function and never a state, so nothing depends on ranks or threads.
CPUTRAIN_HOST_DEVICE constexpr RandomWords philox(RandomWords counter, RandomKey key) {
  constexpr std::uint32_t kMultiply0 = 0xD2511F53u, kMultiply1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = static_cast<std::uint64_t>(kMultiply0) * counter.x;
    const std::uint64_t product1 = static_cast<std::uint64_t>(kMultiply1) * counter.z;
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter.y ^ key.x,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter.w ^ key.y,
               static_cast<std::uint32_t>(product0)};
    key = {key.x + kWeyl0, key.y + kWeyl1};
  }
  return counter;
}

/// The key is the seed.
CPUTRAIN_HOST_DEVICE constexpr RandomWords philox(RandomWords counter, std::uint64_t seed) {
  return philox(
      counter, RandomKey{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// What a stream of random numbers is for; part of the key, so no two uses share a stream.
enum class Purpose : std::uint32_t {
  order,
  augment,
  dropout,
  weights,
  split,
  pixels,
  noise,
  compression,
  comparison,
  mixing
};

/// A word as a number in [0, 1) with 24 bits: exact in float, so the same on every backend.
CPUTRAIN_HOST_DEVICE constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1.0p-24f;
}

/// Dropout's words of elements 4 * group .. 4 * group + 3 of one sample, as DropoutMask of random.h
/// has them: the one place that decides where they lie in the generator's counter.
CPUTRAIN_HOST_DEVICE constexpr RandomWords dropout_words(std::uint64_t seed, std::uint64_t step,
                                                         std::uint32_t layer, std::uint32_t sample,
                                                         std::uint32_t group) {
  return philox({group, static_cast<std::uint32_t>(Purpose::dropout) | (layer << 8),
                 static_cast<std::uint32_t>(step), sample},
                seed);
}

/// Whether the element of this word stays.
CPUTRAIN_HOST_DEVICE constexpr bool dropout_keeps(std::uint32_t word, float rate) {
  return unit_float(word) >= rate;
}

}  // namespace cputrain
