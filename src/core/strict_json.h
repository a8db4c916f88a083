#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cputrain {

/// Parses JSON from a file that may be hostile: bytes that are not UTF-8, nesting deeper than 32, a
/// key twice in one object, text after the end, more than a million keys or ten million values
/// (memory of a hundred bytes each) are mistakes. Throws std::runtime_error saying what is wrong.
nlohmann::json parse_strict_json(const std::string& text);

}  // namespace cputrain
