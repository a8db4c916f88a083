#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace cputrain::system {

/// One line for people on standard error. It is escaped as a whole (core/text.h), since names,
/// paths and libraries' messages in it come from outside: line ends, too, so several lines are
/// several calls. A full or closed stream is no reason to stop, nor is one that nobody reads:
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
