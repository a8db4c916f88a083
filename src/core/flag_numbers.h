#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Numbers that flags have as text. Error(usage) names the flag, the text and what is allowed.
namespace cputrain {

std::int64_t parse_whole(const std::string& flag, const std::string& text, std::int64_t min,
                         std::int64_t max);
double parse_real(const std::string& flag, const std::string& text, double min, double max);
/// Whole numbers between commas, each once.
std::vector<std::int64_t> parse_wholes(const std::string& flag, const std::string& text,
                                       std::int64_t min, std::int64_t max);

}  // namespace cputrain
