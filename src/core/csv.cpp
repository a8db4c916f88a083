#include "core/csv.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/text.h"

namespace cputrain {
namespace {

/// A number with a sign in front, "-0.5" or "+1e3".
bool is_signed_number(std::string_view text) {
  const std::string_view digits = text.substr(1);
  if (digits.empty() || std::string_view("0123456789.").find(digits[0]) == digits.npos)
    return false;
  return number_in<double>(digits).has_value();
}

/// Signs that a formula begins with; spreadsheets of East Asia know the wide ones, too.
bool is_formula(std::string_view text) {
  constexpr std::array<std::string_view, 8> kSigns{"=", "+", "-", "@", "＝", "＋", "－", "＠"};
  const bool begins =
      std::ranges::any_of(kSigns, [&](std::string_view sign) { return text.starts_with(sign); });
  return begins && !((text[0] == '+' || text[0] == '-') && is_signed_number(text));
}

std::string in_quotes(const std::string& line) {
  if (line.find_first_of(",\"") == line.npos) return line;
  std::string cell = "\"";
  for (const char c : line) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
  return cell + "\"";
}

}  // namespace

std::string csv_cell(std::string_view text) {
  const std::string line = escaped(text);
  return in_quotes(is_formula(line) ? "'" + line : line);
}

std::vector<std::string> csv_header(std::span<const std::string> names) {
  std::vector<std::string> cells;
  for (const std::string& name : names) cells.push_back(csv_cell(name));
  const std::set<std::string> given(cells.begin(), cells.end());
  std::set<std::string> taken;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (int n = 2; taken.contains(cells[i]); ++n) {
      const std::string other = csv_cell(names[i] + " (" + std::to_string(n) + ")");
      if (!given.contains(other)) cells[i] = other;
    }
    taken.insert(cells[i]);
  }
  return cells;
}

}  // namespace cputrain
