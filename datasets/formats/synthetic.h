#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace cputrain::datasets {

/// Made images of two classes, as many of each: a few large pale spots on a dark ground, many
/// small bright ones. Places, number, sizes, colours, contrast, a slope of brightness and noise
/// vary; the mean colour of an image gives the class away in 4 of 5 cases only, a small CNN learns
/// all of them; flips and turns keep the class. An image is a function of seed, index and size,
/// drawn at whatever size is asked for.
std::unique_ptr<data::Dataset> make_synthetic_dataset(std::size_t count, std::uint64_t seed);

}  // namespace cputrain::datasets
