#include "core/flag_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/text.h"

namespace cputrain {

std::int64_t parse_whole(const std::string& flag, const std::string& text, std::int64_t min,
                         std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < min || value > max) {
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be a whole number from {} to {}", flag, text, min, max));
  }
  return value;
}

std::vector<std::int64_t> parse_wholes(const std::string& flag, const std::string& text,
                                       std::int64_t min, std::int64_t max) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) {
    std::int64_t value = 0;
    const char* end = part.data() + part.size();
    const auto [stop, error] = std::from_chars(part.data(), end, value);
    const bool read = error == std::errc{} && stop == end && value >= min && value <= max;
    if (!read || values.size() == kMost || std::ranges::find(values, value) != values.end()) {
      fail(ExitCode::usage,
           fmt::format("--{} {}: must be different whole numbers from {} to {}, with one comma "
                       "between each two",
                       flag, text, min, max));
    }
    values.push_back(value);
  }
  return values;
}

double parse_real(const std::string& flag, const std::string& text, double min, double max) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(value) || value < min || value > max) {
    fail(ExitCode::usage,
         fmt::format("--{} {}: must be a number from {:g} to {:g}", flag, text, min, max));
  }
  return value;
}

}  // namespace cputrain
