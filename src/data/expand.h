#pragma once

#include <optional>
#include <string_view>

namespace cputrain::data {

/// Whether each image of the data becomes six samples, one a Turn. `six`: split into training and
/// validation first, so that no image is in both; `six_leaky`: split afterwards, as the potato
/// chips program does, with turns of training images in validation.
enum class Expand { none, six, six_leaky };

/// "none", "six" or "six-leaky": for flags and weight files.
std::string_view expand_name(Expand);
std::optional<Expand> expand_of(std::string_view name);

}  // namespace cputrain::data
