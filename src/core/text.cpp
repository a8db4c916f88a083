#include "core/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>

#include "core/error.h"

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

/// Control characters, line and paragraph separator, and what turns the direction of text (Unicode
/// TR9: marks, embeddings, overrides, isolates).
bool is_unsafe(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c ||
         (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

/// Every unsafe character as an escape, but those that are kept.
std::string with_escapes(std::string_view text, std::string_view kept) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t unsafe = unsafe_bytes(text);
    if (unsafe == 0 || kept.find(text.front()) != std::string_view::npos) {
      const std::size_t size = utf8_bytes(text);
      result += text.substr(0, size);
      text.remove_prefix(size);
      continue;
    }
    const std::uint32_t code =
        code_point(text.substr(0, unsafe));  // the byte itself where it is no UTF-8
    if (code == '\n' || code == '\t' || code == '\r') {
      result += code == '\n' ? "\\n" : code == '\t' ? "\\t" : "\\r";
    } else {
      result += unsafe == 1 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    }
    text.remove_prefix(unsafe);
  }
  return result;
}

/// Columns of a terminal: 0, 1 or 2. Ranges of wide characters from Unicode's EastAsianWidth.txt,
/// without the rare ones between them.
std::size_t columns_of_first(std::string_view text) {
  const std::size_t size = utf8_bytes(text);
  if (size < 2) return 1;
  const std::uint32_t code = code_point(text.substr(0, size));
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return code >= first && code <= last;
  };
  if (within(0x300, 0x36f) || within(0x200b, 0x200d) || within(0xfe00, 0xfe0f)) return 0;
  const bool wide = within(0x1100, 0x115f) || within(0x2e80, 0x303e) || within(0x3041, 0xa4cf) ||
                    within(0xac00, 0xd7a3) || within(0xf900, 0xfaff) || within(0xfe30, 0xfe6f) ||
                    within(0xff00, 0xff60) || within(0xffe0, 0xffe6) || within(0x1f300, 0x1faff) ||
                    within(0x20000, 0x3fffd);
  return wide ? 2 : 1;
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string small_letters(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
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

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::uint32_t code_point(std::string_view character) {
  const auto at = [&](std::size_t i) -> std::uint32_t {
    return static_cast<unsigned char>(character[i]);
  };
  if (character.size() == 1) return at(0);
  std::uint32_t code = at(0) & (0x7fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = code << 6 | (at(i) & 0x3f);
  return code;
}

std::size_t utf8_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) -> std::uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  if (text.empty()) return 0;
  if (at(0) < 0x80) return 1;
  if (at(0) < 0xc2 || at(0) > 0xf4) return 0;  // goes on with a character, or begins none
  const std::size_t size = at(0) >= 0xf0 ? 4 : at(0) >= 0xe0 ? 3 : 2;
  for (std::size_t i = 1; i < size; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  // Too long a form of a smaller character, a surrogate, or beyond the last character.
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const std::uint32_t code = code_point(text.substr(0, size));
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kLeast[size] || surrogate || code > 0x10ffff ? 0 : size;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = utf8_bytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::size_t unsafe_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t size = utf8_bytes(text);
  if (size == 0) return 1;
  return is_unsafe(code_point(text.substr(0, size))) ? size : 0;
}

std::string escaped(std::string_view text) { return with_escapes(text, ""); }

std::string escaped_lines(std::string_view text) { return with_escapes(text, "\n"); }

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string result = escaped(text.substr(0, 2 * kMost));
  if (result.size() <= kMost) return result;
  std::size_t end = kMost;
  while ((result[end] & 0xc0) == 0x80) --end;  // not inside a character
  return result.substr(0, end) + "...";
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (; !text.empty(); text.remove_prefix(std::max<std::size_t>(utf8_bytes(text), 1))) {
    columns += columns_of_first(text);
  }
  return columns;
}

std::string in_columns(std::string_view text, std::size_t width) {
  std::size_t columns = 0, end = 0;
  while (end < text.size()) {
    const std::size_t more = columns_of_first(text.substr(end));
    if (columns + more > width) break;
    columns += more;
    end += std::max<std::size_t>(utf8_bytes(text.substr(end)), 1);
  }
  return std::string(text.substr(0, end)) + std::string(width - columns, ' ');
}

std::string first_few(std::span<const std::string> parts, std::size_t most) {
  const std::string text = join(parts.first(std::min(most, parts.size())), ", ");
  return parts.size() > most ? text + ", ..." : text;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> words) {
  const auto distance = [word = small_letters(std::string(word))](const std::string& candidate) {
    return edit_distance(word, small_letters(candidate));
  };
  const auto nearest = std::ranges::min_element(words, {}, distance);
  if (nearest == words.end()) return {};
  const std::size_t allowed = std::max<std::size_t>(2, word.size() / 3);
  if (distance(*nearest) > allowed) return {};
  return fmt::format("; did you mean {}?", *nearest);
}

void refuse_word(std::string_view flag, std::string_view word, std::span<const std::string> words,
                 std::optional<std::string> hint) {
  fail(ExitCode::usage, "--{} {}: must be one of {}{}", flag, word, join(words, ", "),
       hint ? *hint : did_you_mean(word, words));
}

std::string plural(std::string_view what, double count) {
  return std::string(what) + (count == 1 ? "" : what.ends_with('s') ? "es" : "s");
}

std::string with_commas(std::size_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string with_commas(std::size_t number, std::string_view what) {
  return with_commas(number) + ' ' + plural(what, static_cast<double>(number));
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

std::string progress_text(std::string_view what, std::size_t done, std::size_t all,
                          double seconds) {
  constexpr std::size_t kKnown = 100;
  const std::string text = fmt::format("{} {}/{}", what, with_commas(done), with_commas(all));
  if (done == 0 || done > all || kKnown * done < all) return text;
  return text + " - ETA: " +
         eta_text(seconds * static_cast<double>(all - done) / static_cast<double>(done));
}

std::string quoted(const std::string& word) {
  const bool plain = std::ranges::all_of(word, [](unsigned char c) {
    return std::isalnum(c) ||
           std::string_view("-_./,:=+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string command_line(const std::vector<std::string>& words) {
  std::vector<std::string> parts;
  for (const std::string& word : words) parts.push_back(quoted(word));
  return join(parts, " ");
}

}  // namespace cputrain
