#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace cputrain {

/// JSON as text on one line, or indented. File and class names may hold bytes that are not UTF-8;
/// those become the replacement character instead of an exception.
std::string json_text(const nlohmann::json&, int indent = -1);
std::string json_text(const nlohmann::ordered_json&, int indent = -1);

/// Null for what is not known.
nlohmann::ordered_json known(const std::optional<double>&);
nlohmann::ordered_json known(const std::optional<int>&);

}  // namespace cputrain
