#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// An ImageSet in memory: image i is sample 1000 + 3 i with label i mod 5, and all its pixels
/// differ from those of other images.
class MadeSet {
 public:
  MadeSet(std::size_t count, Shape image) : pixels_(count * image.size()) {
    set_.image = image;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < image.size(); ++k) {
        pixels_[i * image.size() + k] = static_cast<std::uint8_t>(i * 31 + k * 7);
      }
      set_.pixels.push_back(&pixels_[i * image.size()]);
      set_.labels.push_back(static_cast<std::int32_t>(i % 5));
      set_.samples.push_back(static_cast<std::uint32_t>(1000 + 3 * i));
    }
  }
  const data::ImageSet& set() const { return set_; }
  static std::size_t index_of(std::uint32_t sample) { return (sample - 1000) / 3; }

 private:
  std::vector<std::uint8_t> pixels_;
  data::ImageSet set_;
};

}  // namespace cputrain::datasets
