#pragma once

#include <cstdint>

namespace cputrain::compute {

/// What an image's loss is where that of its label, once, is not all of it: of a mixed image, or
/// where classes have weights. The loss is own * loss(label) + others * loss(other); predictions
/// are judged by the label.
struct MixedLabel {
  std::int32_t other = 0;
  float own = 1, others = 0;

  bool operator==(const MixedLabel&) const = default;
};

}  // namespace cputrain::compute
