#include "weights/module_names.h"

#include <charconv>
#include <map>

namespace cputrain::weights {
namespace {

using Numbers = std::map<std::string_view, int>;

/// The name between braces at the beginning of `text`, which is cut off.
std::string_view take_name(std::string_view& text) {
  const std::size_t end = text.find('}');
  const std::string_view name = text.substr(1, end - 1);
  text.remove_prefix(end + 1);
  return name;
}

/// The digits at the beginning of `text`, which are cut off.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.front() == '-') return {};
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return value;
}

std::optional<Numbers> match(std::string_view pattern, std::string_view text) {
  Numbers numbers;
  while (!pattern.empty()) {
    if (pattern.front() == '{') {
      const std::string_view name = take_name(pattern);
      const std::optional<int> number = take_number(text);
      if (!number) return {};
      numbers[name] = *number;
    } else {
      if (text.empty() || text.front() != pattern.front()) return {};
      pattern.remove_prefix(1);
      text.remove_prefix(1);
    }
  }
  return text.empty() ? std::optional(numbers) : std::nullopt;
}

/// The value of "x", "x+1" or "x-1".
int value_of(std::string_view term, const Numbers& numbers) {
  const std::size_t sign = term.find_first_of("+-");
  const int value = numbers.at(term.substr(0, sign));
  if (sign == std::string_view::npos) return value;
  std::string_view rest = term.substr(sign + 1);
  const int change = take_number(rest).value_or(0);
  return term[sign] == '+' ? value + change : value - change;
}

std::string filled(std::string_view pattern, const Numbers& numbers) {
  std::string text;
  while (!pattern.empty()) {
    if (pattern.front() == '{') {
      text += std::to_string(value_of(take_name(pattern), numbers));
    } else {
      text += pattern.front();
      pattern.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace

std::optional<std::string> ModuleNames::module(std::string_view layer) const {
  for (const NameRule& rule : rules) {
    if (const auto numbers = match(rule.ours, layer)) return filled(rule.theirs, *numbers);
  }
  return {};
}

}  // namespace cputrain::weights
