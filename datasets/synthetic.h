#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace cputrain {

/// Made pictures of two classes, as many of each: light spots on a darker ground, dark spots on a
/// lighter one. Places, number, sizes, colours, contrast, a slope of brightness and noise vary, and
/// the mean colour of a picture says nothing of its class; flips and turns keep the class. A
/// picture is a function of seed, index and size, drawn at whatever size is asked for.
std::unique_ptr<Dataset> make_synthetic_dataset(std::size_t count, std::uint64_t seed);

}  // namespace cputrain
