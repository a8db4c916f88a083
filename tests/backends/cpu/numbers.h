#pragma once

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

}  // namespace cputrain::cpu
