#include "model/normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/names.h"
#include "core/text.h"

namespace cputrain::model {

/// `unit` is 0 to 1, `symmetric` Keras' "tf" mode, -1 to 1.
static const std::array<Name<Input>, 3>& names(const Input&) {
  static const std::array<Name<Input>, 3> all{
      {{Input{}, "unit"},
       {normalized(0.5f, 0.5f), "symmetric"},
       {normalized(kImageNetMean, kImageNetDeviation), "imagenet"}}};
  return all;
}

namespace {

[[noreturn]] void refuse(const std::string& text) {
  fail(ExitCode::usage,
       "--normalize {} must be {}, or MEAN/DEVIATION of pixels from 0 to 1, each a number or three "
       "between commas (such as 0.5/0.25); means are from 0 to 1, deviations above 0",
       text, join(normalization_words(), ", "));
}

float number(const std::string& word, const std::string& text) {
  const auto value = number_in<float>(word);
  if (!value || !(*value >= -1e3f && *value <= 1e3f)) refuse(text);
  return *value;
}

PerColour per_colour(const std::string& part, const std::string& text) {
  const std::vector<std::string> words = split(part, ',');
  if (words.size() == 1) return number(words[0], text);
  if (words.size() != 3) refuse(text);
  return {number(words[0], text), number(words[1], text), number(words[2], text)};
}

}  // namespace

Input normalized(const PerColour& mean, const PerColour& deviation) {
  Input input;
  for (int colour = 0; colour < 3; ++colour) {
    const double d = deviation.of[colour];
    input.scale.of[colour] = static_cast<float>(1 / (255 * d));
    input.offset.of[colour] = static_cast<float>(-static_cast<double>(mean.of[colour]) / d);
  }
  return input;
}

Input parse_normalization(const std::string& text) {
  if (const auto named = value_named<Input>(text)) return *named;
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() != 2) refuse(text);
  const PerColour mean = per_colour(parts[0], text), deviation = per_colour(parts[1], text);
  if (std::ranges::any_of(deviation.of, [](float d) { return d < 1e-3f; })) refuse(text);
  if (std::ranges::any_of(mean.of, [](float m) { return m < 0 || m > 1; })) refuse(text);
  return normalized(mean, deviation);
}

std::vector<std::string> normalization_words() { return all_words<Input>(); }

std::string normalization_word(const Input& input) { return std::string(word_of(input)); }

std::string normalization_text(const Input& input) {
  const std::string word = normalization_word(input);
  if (!word.empty()) return word;
  return fmt::format("x * {} + {}", per_colour_text(input.scale), per_colour_text(input.offset));
}

std::string per_colour_text(const PerColour& values) {
  const auto& [red, green, blue] = values.of;
  if (values == PerColour(red)) return fmt::format("{:.9g}", red);
  return fmt::format("({:.9g}, {:.9g}, {:.9g})", red, green, blue);
}

}  // namespace cputrain::model
