#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/random/random.h"

namespace cputrain::compute {

/// Random sizes and numbers of one case of a selftest: a function of seed and name, so that they do
/// not change where other cases come or go.
class CaseNumbers {
 public:
  CaseNumbers(std::uint64_t seed, std::string_view name)
      : stream_(seed, Purpose::noise, static_cast<std::uint32_t>(Fnv1a().add(name).value())) {}

  int between(int low, int high) {
    return low + static_cast<int>(below(word(), static_cast<std::uint32_t>(high - low + 1)));
  }
  int odd_between(int low, int high) { return between(low / 2, (high - 1) / 2) * 2 + 1; }
  float real(float low = -1, float high = 1) { return low + (high - low) * unit_float(word()); }

  std::vector<float> reals(std::size_t count, float low = -1, float high = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = real(low, high);
    return values;
  }
  /// So few that equals are common.
  std::vector<float> whole(std::size_t count, int low, int high) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(between(low, high));
    return values;
  }
  std::vector<std::uint8_t> bytes(std::size_t count) {
    std::vector<std::uint8_t> values(count);
    for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(word());
    return values;
  }

 private:
  std::uint32_t word() {
    const std::uint32_t number = count_++;
    if (number % 4 == 0) words_ = stream_.at(number / 4);
    return words_[number % 4];
  }

  RandomStream stream_;
  std::uint32_t count_ = 0;
  std::array<std::uint32_t, 4> words_{};
};

}  // namespace cputrain::compute
