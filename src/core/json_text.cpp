#include "core/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

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

using nlohmann::json;

constexpr std::size_t kMaxDepth = 32, kMaxKeys = 1'000'000, kMaxEvents = 10'000'000;

/// Builds the value from the parser's events and throws where a rule is broken. The library's own
/// builder with a callback looks through the whole parent at the end of every part: quadratic.
class Builder final : public nlohmann::json_sax<json> {
 public:
  json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none

  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    count();
    if (++keys_ > kMaxKeys) throw std::runtime_error("more than a million keys");
    const auto [place, added] = open_.back()->emplace(name, nullptr);
    if (!added) throw std::runtime_error("key " + json(name).dump() + " appears twice");
    member_ = &*place;
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const json::exception& error) override {
    throw std::runtime_error(error.what());
  }

 private:
  void count() {
    if (open_.size() > kMaxDepth) throw std::runtime_error("nested too deeply");
    if (++events_ > kMaxEvents) throw std::runtime_error("more than 10 million values");
  }

  /// Where the next value goes: what is open stays where it is until it is closed.
  json& put(json value) {
    count();
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back()->is_object()) return *member_ = std::move(value);
    return open_.back()->emplace_back(std::move(value));
  }

  bool add(json value) {
    put(std::move(value));
    return true;
  }

  bool open(json value) {
    json& place = put(std::move(value));
    open_.push_back(&place);
    return true;
  }

  bool close() {
    open_.pop_back();
    count();
    return true;
  }

  json root_;
  std::vector<json*> open_;  ///< objects and lists, the innermost last
  json* member_ = nullptr;   ///< the innermost object's, whose value comes next
  std::size_t events_ = 0, keys_ = 0;
};

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) { return text_of(value, indent); }

std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return text_of(value, indent);
}

nlohmann::ordered_json known(const std::optional<double>& value) { return value_or_null(value); }

nlohmann::ordered_json known(const std::optional<int>& value) { return value_or_null(value); }

json parse_strict_json(const std::string& text) {
  // The parser takes a zero byte for the end and would not look at what follows.
  if (text.find('\0') != std::string::npos) throw std::runtime_error("it holds a zero byte");
  Builder builder;
  try {
    json::sax_parse(text, &builder);
  } catch (const std::exception& error) {  // its words may hold bytes of the text
    throw std::runtime_error(printable(error.what()));
  }
  return builder.take();
}

}  // namespace cputrain
