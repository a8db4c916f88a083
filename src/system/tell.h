#pragma once

#include <string_view>

namespace cputrain::system {

/// One line for people on standard error. It is escaped as a whole (core/text.h), since names,
/// paths and libraries' messages in it come from outside: line ends, too, so several lines are
/// several calls. A full or closed stream is no reason to stop: errors are ignored.
void tell(std::string_view line);

}  // namespace cputrain::system
