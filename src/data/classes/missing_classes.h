#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"

namespace cputrain::data {

/// "2 of 20 classes (c07, c12)": those of which no sample is among these, the first few by name;
/// classes without any image are not counted. Empty where there are none.
std::string missing_classes(const DataSource&, std::span<const std::uint32_t> samples);

}  // namespace cputrain::data
