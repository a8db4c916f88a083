#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace cputrain {

/// The number that a text is from its first sign to its last, as std::from_chars() reads it;
/// nothing for any other text.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace cputrain
