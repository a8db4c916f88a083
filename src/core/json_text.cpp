#include "core/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/text.h"

namespace cputrain {
namespace {

/// With texts and keys that are all UTF-8: other bytes are shown as \xff, so that two names that
/// differ go on to differ.
template <class Json>
Json in_utf8(const Json& value) {
  const auto shown = [](const std::string& text) { return is_utf8(text) ? text : escaped(text); };
  if (value.is_string()) return shown(value.template get<std::string>());
  if (!value.is_structured()) return value;
  Json result = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, part] : value.items()) {
    if (value.is_array()) {
      result.push_back(in_utf8(part));
    } else {
      result[shown(key)] = in_utf8(part);
    }
  }
  return result;
}

/// What the library leaves as it is although a terminal obeys it: all of these have four
/// hexadecimal digits, and stand in texts only.
std::string without_unsafe(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (std::string_view rest = json; !rest.empty();) {
    const std::size_t unsafe = rest.front() == '\n' ? 0 : unsafe_bytes(rest);
    const std::size_t size = unsafe > 0 ? unsafe : utf8_bytes(rest);
    const std::string_view sign = rest.substr(0, size);
    result += unsafe > 0 ? fmt::format("\\u{:04x}", code_point(sign)) : std::string(sign);
    rest.remove_prefix(size);
  }
  return result;
}

template <class Json>
std::string text_of(const Json& value, int indent) {
  try {
    return without_unsafe(value.dump(indent));
  } catch (const typename Json::type_error&) {  // a text that is no UTF-8
    return without_unsafe(in_utf8(value).dump(indent));
  }
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
