#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cputrain {

/// Parses JSON from a file that may be hostile: nesting deeper than 32, a key twice in one object
/// and text after the end are mistakes. Throws std::runtime_error saying what is wrong and where.
nlohmann::json parse_strict_json(const std::string& text);

}  // namespace cputrain
