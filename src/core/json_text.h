#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cputrain {

/// JSON as text on one line, or indented. File and class names may hold bytes that are not UTF-8;
/// those become the replacement character instead of an exception.
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Null for what is not known.
template <class T>
nlohmann::ordered_json known(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace cputrain
