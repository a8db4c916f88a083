#pragma once

#include <nlohmann/json_fwd.hpp>

namespace cputrain::checkpoint {

inline constexpr int kStateFormat = 2;  ///< state.json's, as it is written

/// Brings a state.json of format 1 to that of today. It had one count for early stopping and best
/// weights, ignored EXIF orientation, and did not have all that ends a training. What is not as
/// format 1 has it stays, for the reader to refuse.
void bring_up_to_date(nlohmann::ordered_json& state);

/// Brings what a training is to today's words for how its images were resized, from before there
/// was --fit: its `bilinear` had no antialias.
void name_resizing(nlohmann::ordered_json& training);

}  // namespace cputrain::checkpoint
