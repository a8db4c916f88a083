#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace cputrain {

/// "1 rank", "2 ranks".
template <class Integer>
std::string counted(Integer n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace cputrain
