#include "data/augment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::data {
namespace {

/// One word of --augment: a member that is switched on, or one that gets a number or a range.
struct Part {
  std::string_view name, unit;  ///< the unit stands in the help; empty for switches
  bool Augment::*on = nullptr;
  double Augment::*amount = nullptr;
  int Augment::*pixels = nullptr;
  Interval Augment::*reach = nullptr;
  int Augment::*strength = nullptr;  ///< behind `pixels` and a colon
  bool computes = false;             ///< pixels, although it has no amount
  double least = 0, most = 0;
};

constexpr std::array<Part, 19> kParts{{
    {.name = "crop", .unit = "", .on = &Augment::crop_part, .computes = true},
    {.name = "crop-area",
     .unit = "FROM-TO",
     .reach = &Augment::crop_area,
     .least = 0.01,
     .most = 1},
    {.name = "crop-ratio",
     .unit = "FROM-TO",
     .reach = &Augment::crop_ratio,
     .least = 0.1,
     .most = 10},
    {.name = "rotate", .unit = "DEGREES", .amount = &Augment::rotate, .most = 180},
    {.name = "shift", .unit = "PART", .amount = &Augment::shift, .most = 1},
    {.name = "shear", .unit = "DEGREES", .amount = &Augment::shear, .most = 80},
    {.name = "zoom", .unit = "PART", .amount = &Augment::zoom, .most = 0.9},
    {.name = "flip", .unit = "", .on = &Augment::flip},
    {.name = "vflip", .unit = "", .on = &Augment::vflip},
    {.name = "six", .unit = "", .on = &Augment::six},
    {.name = "crop", .unit = "PIXELS", .pixels = &Augment::crop, .most = 1024},
    {.name = "rand",
     .unit = "STEPS:MAGNITUDE",
     .pixels = &Augment::rand_steps,
     .strength = &Augment::rand_magnitude,
     .computes = true,
     .most = 8},
    {.name = "colour", .unit = "PART", .amount = &Augment::colour, .most = 1},
    {.name = "brightness", .unit = "PART", .amount = &Augment::brightness, .most = 1},
    {.name = "contrast", .unit = "PART", .amount = &Augment::contrast, .most = 1},
    {.name = "saturation", .unit = "PART", .amount = &Augment::saturation, .most = 1},
    {.name = "cutout",
     .unit = "PIXELS",
     .pixels = &Augment::cutout,
     .computes = true,
     .most = 1024},
    {.name = "mixup", .unit = "ALPHA", .amount = &Augment::mixup, .most = 100},
    {.name = "cutmix", .unit = "ALPHA", .amount = &Augment::cutmix, .most = 100},
}};

[[noreturn]] void refuse(std::string_view text, std::string_view part, const std::string& why) {
  fail(ExitCode::usage, "--augment {}: {} {}", text, part, why);
}

/// A word with a number may be another part than the word alone.
const Part& find_part(std::string_view text, std::string_view name, bool has_number) {
  if (name == "color") name = "colour";
  std::vector<std::string> names;
  const Part* found = nullptr;
  for (const Part& part : kParts) {
    if (part.name == name && (!found || part.unit.empty() != has_number)) found = &part;
    names.emplace_back(part.name);
  }
  if (found) return *found;
  refuse(text, fmt::format("'{}'", name),
         fmt::format("must be none or some of {}{}", augment_forms(), did_you_mean(name, names)));
}

bool is_set(const Augment& augment, const Part& part) {
  if (part.on) return augment.*part.on;
  if (part.reach) return augment.*part.reach != Augment{}.*part.reach;
  return part.amount ? augment.*part.amount != 0 : augment.*part.pixels != 0;
}

template <class T>
T number(std::string_view text, std::string_view word, std::string_view digits, const Part& part) {
  const auto value = number_in<T>(digits);
  if (!value || !(*value >= 0 && *value <= static_cast<T>(part.most))) {
    refuse(text, word,
           fmt::format("must be {}:{} with a {}number from 0 to {}", part.name, part.unit,
                       part.pixels ? "whole " : "", part.most));
  }
  return *value;
}

Interval range(std::string_view text, std::string_view word, std::string_view digits,
               const Part& part) {
  Interval range{};
  const char* end = digits.data() + digits.size();
  const auto [middle, error] = std::from_chars(digits.data(), end, range.low);
  const bool goes_on = error == std::errc{} && middle != end && *middle == '-';
  const auto [stop, other] = std::from_chars(goes_on ? middle + 1 : end, end, range.high);
  if (!goes_on || other != std::errc{} || stop != end || !(range.low >= part.least) ||
      !(range.high >= range.low && range.high <= part.most)) {
    refuse(text, word,
           fmt::format("must be {0}:{1} with two numbers from {2} to {3}, as {0}:{4}-1", part.name,
                       part.unit, part.least, part.most, 0.5));
  }
  return range;
}

std::optional<int> whole(std::string_view digits, int most) {
  const auto value = number_in<int>(digits);
  return value && *value >= 0 && *value <= most ? value : std::nullopt;
}

/// STEPS:MAGNITUDE. Either 0 is none of it, though some kinds of step have no magnitude.
void set_rand(Augment& augment, std::string_view text, std::string_view word, const Part& part) {
  constexpr int kMostMagnitude = 10;
  const std::string_view numbers = word.substr(word.find(':') + 1);
  const std::size_t colon = std::min(numbers.find(':'), numbers.size());
  const auto steps = whole(numbers.substr(0, colon), static_cast<int>(part.most));
  const auto magnitude = whole(numbers.substr(std::min(colon + 1, numbers.size())), kMostMagnitude);
  if (!steps || !magnitude) {
    refuse(text, word,
           fmt::format("must be {}:{} with whole numbers up to {} and {}, such as rand:2:9",
                       part.name, part.unit, part.most, kMostMagnitude));
  }
  if (*steps == 0 || *magnitude == 0) return;
  augment.*part.pixels = *steps;
  augment.*part.strength = *magnitude;
}

void set_part(Augment& augment, std::string_view text, std::string_view word,
              std::vector<const Part*>& seen) {
  if (word == "none") refuse(text, word, "stands alone; leave it out, or the others");
  const std::size_t colon = word.find(':');
  const bool has_number = colon != std::string_view::npos;
  const Part& part = find_part(text, word.substr(0, colon), has_number);
  if (std::ranges::count(seen, &part) > 0) refuse(text, part.name, "is there twice");
  seen.push_back(&part);
  if (part.on && has_number) refuse(text, part.name, "takes no number");
  if (!part.on && !has_number)
    refuse(text, part.name, fmt::format("needs a number, {}:{}", part.name, part.unit));
  if (part.on) {
    augment.*part.on = true;
  } else if (part.reach) {
    augment.*part.reach = range(text, word, word.substr(colon + 1), part);
    augment.crop_part = true;
  } else if (part.amount) {
    augment.*part.amount = number<double>(text, word, word.substr(colon + 1), part);
  } else if (part.strength) {
    set_rand(augment, text, word, part);
  } else {
    augment.*part.pixels = number<int>(text, word, word.substr(colon + 1), part);
  }
}

}  // namespace

bool only_moves(const Augment& augment) {
  return std::ranges::none_of(kParts, [&](const Part& part) {
    return (part.amount || part.computes) && is_set(augment, part);
  });
}

int kept_sides(const Augment& augment) { return augment.crop_part ? 2 : 1; }

Augment parse_augment(std::string_view text) {
  Augment augment;
  std::vector<const Part*> seen;
  if (text == "none") return augment;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    set_part(augment, text, text.substr(begin, end - begin), seen);
    begin = end + 1;
  }
  return augment;
}

std::vector<std::string> idle_words(std::string_view text) {
  std::vector<std::string> idle;
  for (const std::string& word : split(text, ',')) {
    if (word != "none" && to_text(parse_augment(word)) == "none") idle.push_back(word);
  }
  return idle;
}

std::string to_text(const Augment& augment) {
  std::vector<std::string> words;
  for (const Part& part : kParts) {
    if (!is_set(augment, part)) continue;
    std::string word(part.name);
    if (part.amount) word += fmt::format(":{}", augment.*part.amount);
    if (part.pixels) word += fmt::format(":{}", augment.*part.pixels);
    if (part.reach)
      word += fmt::format(":{}-{}", (augment.*part.reach).low, (augment.*part.reach).high);
    if (part.strength) word += fmt::format(":{}", augment.*part.strength);
    words.push_back(std::move(word));
  }
  return words.empty() ? "none" : join(words, ",");
}

std::vector<std::string> augment_names() {
  std::vector<std::string> names{"none"};
  for (const Part& part : kParts) {
    if (std::ranges::count(names, part.name) == 0) names.emplace_back(part.name);
  }
  return names;
}

std::string augment_forms() {
  std::vector<std::string> forms;
  for (const Part& part : kParts) {
    forms.push_back(part.unit.empty() ? std::string(part.name)
                                      : fmt::format("{}:{}", part.name, part.unit));
  }
  return join(forms, ", ");
}

}  // namespace cputrain::data
