#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "loop/progress.h"

namespace cputrain::checkpoint {

inline constexpr int kStateFormat = 2;  ///< state.json's

/// Every number comes back as the same bits: those that are not finite are texts, "inf", "-inf" or
/// "nan:" and the bits in hexadecimal.
nlohmann::ordered_json to_json(const loop::Progress&);
/// Error(data) names the field that is missing, not known or out of range.
loop::Progress progress_of(const nlohmann::ordered_json&);

/// The text of a state.json, which may be hostile, as an object of that format. Error(data)
/// without the file's name.
nlohmann::ordered_json parse_state(const std::string& text);
/// The progress in it. Error(data).
loop::Progress progress_of_state(const nlohmann::ordered_json& state);

}  // namespace cputrain::checkpoint
