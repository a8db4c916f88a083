#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/text.h"

/// The ways to standard output. Words that come from outside (names, paths, a file's words) reach
/// no terminal as they are: what a terminal would obey is escaped.
namespace cputrain::system {

/// A text of several lines; what was put into it went through escaped(). It waits for its reader as
/// long as it takes. A failure shows in flush_output(), which main asks in the end: half a result
/// is still better than an exception in the middle of printing it.
void print_lines(std::string_view text);

template <class T>
inline constexpr bool kIsText = std::is_convertible_v<const T&, std::string_view>;

/// What formatted() makes of an argument: a text is escaped, anything else stays.
template <class T>
using Formatted = std::conditional_t<kIsText<T>, std::string, std::remove_cvref_t<T>>;

template <class T>
Formatted<T> formatted_argument(const T& value) {
  if constexpr (kIsText<T>) {
    return escaped(value);
  } else {
    return value;
  }
}

/// As fmt::format, with every text among the arguments escaped: line ends are those of the format.
template <class... Args>
std::string formatted(fmt::format_string<Formatted<Args>...> format, const Args&... args) {
  return fmt::format(format, formatted_argument(args)...);
}

template <class... Args>
void print(fmt::format_string<Formatted<Args>...> format, const Args&... args) {
  print_lines(fmt::format(format, formatted_argument(args)...));
}

}  // namespace cputrain::system
