#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace cputrain {

/// JSON as text on one line, or indented. It is UTF-8, and nothing in it steers a terminal: control
/// characters are JSON's escapes. File names may hold bytes that are not UTF-8; those are shown as
/// four characters, \xff, which JSON writes with two backslashes.
std::string json_text(const nlohmann::json&, int indent = -1);
std::string json_text(const nlohmann::ordered_json&, int indent = -1);

/// Null for what is not known.
nlohmann::ordered_json known(const std::optional<double>&);
nlohmann::ordered_json known(const std::optional<int>&);

/// Parses JSON from a file that may be hostile: bytes that are not UTF-8, nesting deeper than 32, a
/// key twice in one object, text after the end, more than a million keys or ten million values
/// (memory of a hundred bytes each) are mistakes. Throws std::runtime_error saying what is wrong.
nlohmann::json parse_strict_json(const std::string& text);

}  // namespace cputrain
