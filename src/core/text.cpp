#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cputrain {
namespace {

/// Levenshtein's distance: insertions, deletions and substitutions between two words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string result(text.substr(0, kMost));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text.size() > kMost ? result + "..." : result;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> words) {
  const auto nearest = std::ranges::min_element(
      words, {}, [&](const std::string& candidate) { return edit_distance(word, candidate); });
  if (nearest == words.end()) return {};
  const std::size_t allowed = std::max<std::size_t>(2, word.size() / 3);
  if (edit_distance(word, *nearest) > allowed) return {};
  return fmt::format("; did you mean {}?", *nearest);
}

std::string with_commas(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string shape_text(const Shape& shape) {
  if (shape.height == 1 && shape.width == 1) return fmt::format("{}", shape.channels);
  return fmt::format("{}x{}x{}", shape.height, shape.width, shape.channels);
}

std::string bytes_text(double bytes) {
  constexpr const char* kUnits[] = {"bytes", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) {
    bytes /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes)
                   : fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

std::string eta_text(double seconds) {
  const auto s = static_cast<long>(std::max(0.0, seconds));
  if (s > 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s % 3600 / 60, s % 60);
  if (s > 60) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}s", s);
}

}  // namespace cputrain
