#include "backends/cuda/parameter_format.h"

#include <algorithm>

namespace cputrain::cuda {

/// Calls both(stored, canonical) with the two places of every number.
template <class Visit>
void OutputsFirst::visit(const Visit& both) const {
  const std::size_t each = columns() / positions_;
  for (std::size_t o = 0; o < out_; ++o) {
    for (std::size_t p = 0; p < positions_; ++p) {
      for (std::size_t i = 0; i < in_; ++i) {
        both(o * columns() + p * each + i, (p * in_ + i) * out_ + o);
      }
    }
  }
}

void OutputsFirst::to_canonical(std::span<const float> stored, std::span<float> canonical) const {
  visit([&](std::size_t here, std::size_t there) { canonical[there] = stored[here]; });
}

void OutputsFirst::from_canonical(std::span<const float> canonical, std::span<float> stored) const {
  std::ranges::fill(stored, 0.0f);
  visit([&](std::size_t here, std::size_t there) { stored[here] = canonical[there]; });
}

void FiltersLast::to_canonical(std::span<const float> stored, std::span<float> canonical) const {
  for (std::size_t row = 0; row < rows_; ++row) {
    std::copy_n(stored.data() + row * columns(), filters_, canonical.data() + row * filters_);
  }
}

void FiltersLast::from_canonical(std::span<const float> canonical, std::span<float> stored) const {
  std::ranges::fill(stored, 0.0f);
  for (std::size_t row = 0; row < rows_; ++row) {
    std::copy_n(canonical.data() + row * filters_, filters_, stored.data() + row * columns());
  }
}

}  // namespace cputrain::cuda
