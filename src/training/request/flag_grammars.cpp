#include "training/request/flag_grammars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/names.h"
#include "core/precision.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

/// The shorter text that is the number itself.
std::string bound_text(double bound) {
  const std::string text = fmt::format("{:g}", bound);
  return std::stod(text) == bound ? text : fmt::format("{}", bound);
}

}  // namespace

std::int64_t parse_whole(const std::string& flag, const std::string& text, std::int64_t min,
                         std::int64_t max) {
  const auto value = number_in<std::int64_t>(text);
  if (!value || *value < min || *value > max) {
    fail(ExitCode::usage, "--{} {}: must be a whole number from {} to {}", flag, text, min, max);
  }
  return *value;
}

std::vector<std::int64_t> parse_wholes(const std::string& flag, const std::string& text,
                                       std::int64_t min, std::int64_t max) {
  constexpr std::size_t kMost = 1000;
  std::vector<std::int64_t> values;
  for (const std::string& part : split(text, ',')) {
    const auto value = number_in<std::int64_t>(part);
    if (!value || *value < min || *value > max || values.size() == kMost ||
        std::ranges::find(values, *value) != values.end()) {
      fail(
          ExitCode::usage,
          "--{} {}: must be different whole numbers from {} to {}, with one comma between each two",
          flag, text, min, max);
    }
    values.push_back(*value);
  }
  return values;
}

double parse_real(const std::string& flag, const std::string& text, double min, double max) {
  const auto value = number_in<double>(text);
  if (!value || !std::isfinite(*value) || *value < min || *value > max) {
    fail(ExitCode::usage, "--{} {}: must be a number from {} to {}", flag, text, bound_text(min),
         bound_text(max));
  }
  return *value;
}

std::vector<std::string> parse_words(const std::string& flag, const std::string& text) {
  std::vector<std::string> words = split(text, ',');
  if (std::ranges::find(words, "") == words.end()) return words;
  fail(ExitCode::usage, "--{} {}: must be words with one comma between each two", flag, text);
}

bool is_device(const std::string& backend) {
  const auto named = [&](std::string_view word) { return backend.find(word) != std::string::npos; };
  constexpr std::array<std::string_view, 3> kOfOthers{"gpu", "nccl", "rocm"};  // in other tables
  return std::ranges::any_of(kDeviceBackends, named) || std::ranges::any_of(kOfOthers, named);
}

std::string precision_in_figures(const std::string& backend, std::string_view precision) {
  if (precision != word_of(Precision::f32)) return std::string(precision);
  return is_device(backend) ? "tf32" : "";
}

std::string backend_in_figures(const std::string& backend, std::string_view precision) {
  const std::string word = precision_in_figures(backend, precision);
  return backend + (backend.empty() || word.empty() ? "" : " ") + word;
}

}  // namespace cputrain::training
