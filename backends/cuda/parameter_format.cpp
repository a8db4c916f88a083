#include "backends/cuda/parameter_format.h"

#include <algorithm>

namespace cputrain::cuda {

/// Calls both(stored, canonical) with the two places of every number.
template <class Visit>
void PaddedFormat::visit(const Visit& both) const {
  for (std::size_t o = 0; o < out_.count; ++o) {
    for (std::size_t p = 0; p < high_.count * wide_.count; ++p) {
      const std::size_t row = p / wide_.count, column = p % wide_.count;
      for (std::size_t i = 0; i < in_.count; ++i) {
        both(o * out_.pitch + row * high_.pitch + column * wide_.pitch + i * in_.pitch,
             (p * in_.count + i) * out_.count + o);
      }
    }
  }
}

void PaddedFormat::to_canonical(std::span<const float> stored, std::span<float> canonical) const {
  visit([&](std::size_t here, std::size_t there) { canonical[there] = stored[here]; });
}

void PaddedFormat::from_canonical(std::span<const float> canonical, std::span<float> stored) const {
  std::ranges::fill(stored, 0.0f);
  visit([&](std::size_t here, std::size_t there) { stored[here] = canonical[there]; });
}

}  // namespace cputrain::cuda
