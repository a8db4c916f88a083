#pragma once

#include <array>
#include <cstdint>

namespace cputrain {

/// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel Random
/// Numbers: As Easy as 1, 2, 3" (SC11): four random words are a pure function of a counter and a
/// key. Randomness here is a function and never a state, so nothing depends on ranks or threads.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

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
  comparison
};

/// Random numbers for one purpose and up to two coordinates, for example
/// {Purpose::augment, epoch, sample}: at(i) is the i-th group of four words of that stream.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint32_t a = 0, std::uint32_t b = 0)
      : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        purpose_(purpose),
        a_(a),
        b_(b) {}

  std::array<std::uint32_t, 4> at(std::uint32_t index) const {
    return philox({index, static_cast<std::uint32_t>(purpose_), a_, b_}, key_);
  }

 private:
  std::array<std::uint32_t, 2> key_;
  Purpose purpose_;
  std::uint32_t a_, b_;
};

/// A word as a number in [0, 1) with 24 bits: exact in float, so the same on every backend.
constexpr float unit_float(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1.0p-24f;
}

/// A word as a number in [0, bound), without modulo bias that could matter (bound < 2^32).
constexpr std::uint32_t below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * bound) >> 32);
}

/// Whether dropout keeps element `element` of one sample: f(seed, step, layer, sample), so a mask
/// does not depend on which rank, thread or micro-batch holds the sample. `layer` is the node's
/// index in the graph as the model function built it.
class DropoutMask {
 public:
  DropoutMask(float rate, std::uint64_t seed, std::uint64_t step, std::uint32_t layer,
              std::uint32_t sample)
      : rate_(rate),
        key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
        counter_{0, static_cast<std::uint32_t>(Purpose::dropout) | (layer << 8),
                 static_cast<std::uint32_t>(step), sample} {}

  /// Whether elements 4*group .. 4*group+3 are kept.
  std::array<bool, 4> keeps(std::uint32_t group) const {
    auto counter = counter_;
    counter[0] = group;
    const auto words = philox(counter, key_);
    return {unit_float(words[0]) >= rate_, unit_float(words[1]) >= rate_,
            unit_float(words[2]) >= rate_, unit_float(words[3]) >= rate_};
  }

 private:
  float rate_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
};

}  // namespace cputrain
