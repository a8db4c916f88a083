#pragma once

#include <string>

namespace cputrain::system {

/// Today in UTC: "2026-11-25".
std::string today();

}  // namespace cputrain::system
