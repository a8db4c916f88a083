#include "logging/bar_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"

namespace cputrain::logging {
namespace {

constexpr std::size_t kWidth = 30;      // Keras' bar's
constexpr std::size_t kLeastWidth = 8;  // with fewer signs it tells less than the counter
constexpr std::size_t kBesideBar = 3;   // a blank and two brackets

/// What a running line has beside its counter and time. The first that fits is drawn, with as wide
/// a bar as there is room for.
struct Shown {
  bool bar, loss, accuracy;
};
constexpr Shown kShown[] = {
    {true, true, true}, {true, true, false}, {false, true, false}, {false, false, false}};

std::string bar(std::size_t step, std::size_t steps, std::size_t width) {
  const std::size_t done = width * std::min(step, steps) / std::max<std::size_t>(steps, 1);
  std::string text(width, '.');
  std::fill_n(text.begin(), done, '=');
  if (done > 0 && step < steps) text[done - 1] = '>';
  return " [" + text + "]";
}

/// Nothing where even the narrowest bar does not fit beside so many columns.
std::optional<std::size_t> bar_width(std::size_t beside, std::optional<std::size_t> space) {
  const std::size_t needed = beside + kBesideBar + kLeastWidth;
  if (!space) return kWidth;
  if (needed > *space) return std::nullopt;
  return std::min(kWidth, kLeastWidth + *space - needed);
}

}  // namespace

std::string figure_text(double value) {
  return value > 1e-3 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value);
}

std::string step_counter(std::size_t step, std::size_t steps) {
  const std::string all = std::to_string(steps);
  return fmt::format("{:>{}}/{}", step, all.size(), all);
}

std::string running_line(const BarLine& line, std::optional<std::size_t> space) {
  const std::string counter = step_counter(line.step, line.steps);
  for (const Shown& shown : kShown) {
    const std::string values =
        line.time + (shown.loss ? line.loss : "") + (shown.accuracy ? line.accuracy : "");
    const std::size_t beside = columns_of(counter) + columns_of(values);
    const auto width = shown.bar ? bar_width(beside, space) : std::optional<std::size_t>(0);
    if (!width || (space && beside > *space)) continue;
    return counter + (shown.bar ? bar(line.step, line.steps, *width) : "") + values;
  }
  return counter + line.time;
}

std::string finished_line(std::size_t step, std::size_t steps, const std::string& values,
                          std::optional<std::size_t> space) {
  const std::string counter = step_counter(step, steps);
  const auto width = bar_width(columns_of(counter) + columns_of(values), space);
  return counter + (width ? bar(step, steps, *width) : "") + values;
}

}  // namespace cputrain::logging
