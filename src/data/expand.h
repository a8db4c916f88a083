#pragma once

#include "core/names.h"

namespace cputrain::data {

/// Whether each image of the data becomes six samples, one a Turn. `six`: split into training and
/// validation first, so that no image is in both; `six_leaky`: split afterwards, as the potato
/// chips program does, with turns of training images in validation.
enum class Expand { none, six, six_leaky };
constexpr auto names(Expand) {
  return std::to_array<Name<Expand>>(
      {{Expand::none, "none"}, {Expand::six, "six"}, {Expand::six_leaky, "six-leaky"}});
}

}  // namespace cputrain::data
