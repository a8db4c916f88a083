#pragma once

#include <array>
#include <cstdint>

#include "core/random/random_words.h"

namespace cputrain {

/// Random numbers for one purpose and up to two coordinates, for example
/// {Purpose::augment, epoch, sample}: at(i) is the i-th group of four words of that stream.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, Purpose purpose, std::uint32_t a = 0, std::uint32_t b = 0)
      : seed_(seed), purpose_(purpose), a_(a), b_(b) {}

  std::array<std::uint32_t, 4> at(std::uint32_t index) const {
    const RandomWords words = philox({index, static_cast<std::uint32_t>(purpose_), a_, b_}, seed_);
    return {words.x, words.y, words.z, words.w};
  }

 private:
  std::uint64_t seed_;
  Purpose purpose_;
  std::uint32_t a_, b_;
};

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
      : rate_(rate), seed_(seed), step_(step), layer_(layer), sample_(sample) {}

  /// Whether elements 4*group .. 4*group+3 are kept.
  std::array<bool, 4> keeps(std::uint32_t group) const {
    const RandomWords words = dropout_words(seed_, step_, layer_, sample_, group);
    return {dropout_keeps(words.x, rate_), dropout_keeps(words.y, rate_),
            dropout_keeps(words.z, rate_), dropout_keeps(words.w, rate_)};
  }

 private:
  float rate_;
  std::uint64_t seed_, step_;
  std::uint32_t layer_, sample_;
};

}  // namespace cputrain
