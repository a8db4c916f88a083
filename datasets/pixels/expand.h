#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace cputrain::datasets {

/// Each sample of the data set in the six ways of Turn: samples 6 i to 6 i + 5 show its sample i.
/// Images are decoded once and turned when they are used.
std::unique_ptr<data::Dataset> make_six_fold(std::unique_ptr<data::Dataset>);

/// The samples of the six-fold data set that show these.
std::vector<std::uint32_t> six_fold(std::span<const std::uint32_t> samples);

}  // namespace cputrain::datasets
