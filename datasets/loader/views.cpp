#include "datasets/loader/views.h"

#include <algorithm>

namespace cputrain::datasets {

std::vector<std::uint32_t> pictures_of(const data::Dataset& data,
                                       std::span<const std::uint32_t> samples) {
  std::vector<std::uint32_t> pictures;
  pictures.reserve(samples.size());
  for (const std::uint32_t sample : samples) pictures.push_back(data.view(sample).picture);
  std::ranges::sort(pictures);
  const auto rest = std::ranges::unique(pictures);
  pictures.erase(rest.begin(), rest.end());
  return pictures;
}

}  // namespace cputrain::datasets
