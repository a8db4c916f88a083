#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace cputrain {

/// Formatted text on standard output. A failure shows in ferror(stdout), which main looks at in the
/// end: half a result is still better than an exception in the middle of printing it.
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), stdout);
}

}  // namespace cputrain
