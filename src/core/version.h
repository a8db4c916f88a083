#pragma once

#include <string_view>

namespace cputrain {

/// "0.1.0", from project() in CMakeLists.txt.
extern const std::string_view kVersion;

/// "commit abc1234, Release": what the program was built from, and how. Only the program has it, in
/// a file that its build writes (commit.cpp.in), so that no library changes with every commit.
std::string_view build_of_program();

}  // namespace cputrain
