#include "datasets/loader/views.h"

#include <algorithm>

namespace cputrain::datasets {

std::vector<std::uint32_t> images_of(const data::Dataset& data,
                                     std::span<const std::uint32_t> samples) {
  std::vector<std::uint32_t> images;
  images.reserve(samples.size());
  for (const std::uint32_t sample : samples) images.push_back(data.view(sample).image);
  std::ranges::sort(images);
  images.erase(std::unique(images.begin(), images.end()), images.end());
  return images;
}

}  // namespace cputrain::datasets
