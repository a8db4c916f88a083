#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/random/random.h"

namespace cputrain::cpu {

/// Numbers between -1 and 1, of which a share is not zero.
inline std::vector<float> numbers(std::size_t n, float density, std::uint32_t seed) {
  const RandomStream stream(seed, Purpose::pixels, 5);
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const auto drawn = stream.at(static_cast<std::uint32_t>(i));
    if (unit_float(drawn[0]) < density) values[i] = 2 * unit_float(drawn[1]) - 1;
  }
  return values;
}

/// From -1 to 1, all of them.
inline std::vector<float> random_numbers(std::size_t count, std::uint64_t seed) {
  const RandomStream random(seed, Purpose::noise);
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>(random.at(i)[0]) * 0x1p-31f - 1);
  }
  return numbers;
}

/// Largest difference, relative to the largest number.
template <class Number>
double distance(const std::vector<Number>& a, const std::vector<double>& b) {
  double difference = 0, largest = 1e-30;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (std::isnan(a.at(i))) return HUGE_VAL;
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return difference / largest;
}

}  // namespace cputrain::cpu
