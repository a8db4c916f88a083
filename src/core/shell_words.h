#pragma once

#include <string>
#include <vector>

/// Commands to be typed or kept in files.
namespace cputrain {

/// A word as a shell reads it back.
std::string quoted(const std::string& word);
std::string command_line(const std::vector<std::string>& words);

}  // namespace cputrain
