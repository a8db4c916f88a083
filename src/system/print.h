#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/text.h"

/// The ways to standard output and to standard error. Words that come from outside (names, paths, a
/// file's words) reach no terminal as they are: what a terminal would obey is escaped.
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

/// One line for people on standard error. It is escaped as a whole (core/text.h), since names,
/// paths and libraries' messages in it come from outside: line ends, too, so several lines are
/// several calls. A full or closed stream is no reason to stop, nor is one that is not read:
/// errors are ignored. On a terminal it takes the place of a bar of progress, and warnings and
/// errors are coloured.
void tell(std::string_view line);
/// The same with a line that is put together, as fmt::format does it.
template <class First, class... Others>
void tell(fmt::format_string<First, Others...> line, First&& first, Others&&... others) {
  tell(fmt::format(line, std::forward<First>(first), std::forward<Others>(others)...));
}

/// The file descriptor is a terminal that may show colours: NO_COLOR (no-color.org) is not there or
/// empty, and TERM is not "dumb".
bool shows_colours(int descriptor);

/// A line that begins with "warning:" has that word in yellow; one that begins with "cputrain:", an
/// error, is red. Blanks may come before these. Any other line stays as it is.
std::string coloured(std::string_view line);

}  // namespace cputrain::system
