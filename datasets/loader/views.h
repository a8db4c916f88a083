#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// The images that samples show, each once, ascending.
std::vector<std::uint32_t> images_of(const data::Dataset&, std::span<const std::uint32_t> samples);

}  // namespace cputrain::datasets
