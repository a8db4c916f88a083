#include "core/json_text.h"

#include <nlohmann/json.hpp>

namespace cputrain {
namespace {

template <class Json>
std::string text_of(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template <class T>
nlohmann::ordered_json value_or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) { return text_of(value, indent); }

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of(value, indent);
}

nlohmann::ordered_json known(const std::optional<double>& value) { return value_or_null(value); }

nlohmann::ordered_json known(const std::optional<int>& value) { return value_or_null(value); }

}  // namespace cputrain
