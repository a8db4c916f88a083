#pragma once

#include "datasets/open.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing {

/// Whether --data takes this: a data set of which every sample can be read and checked.
inline bool is_data(const std::string& spec) {
  return is_taken([&] {
    const data::DataSource source = datasets::open_data({.spec = spec, .validation_split = 0});
    const data::Dataset& data = *source.dataset;
    const Shape image = data.ready_form().value_or(data::ReadyForm{{8, 8, 3}}).image;
    std::vector<std::uint8_t> pixels(image.size());
    constexpr std::size_t kMost = 64;
    for (std::size_t sample = 0; sample < std::min(data.size(), kMost); ++sample) {
      const int label = data.label(sample);
      promise(label >= 0 && static_cast<std::size_t>(label) < data.classes().size(),
              "labels are those of classes");
      data.name(sample);
      data.read(sample, image, data::Resize::bilinear, pixels);
      data.inspect(sample);
    }
  });
}

}  // namespace cputrain::testing
