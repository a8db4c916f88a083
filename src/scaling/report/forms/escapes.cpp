#include "scaling/report/forms/escapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "core/csv.h"
#include "core/text.h"

namespace cputrain::report {
namespace {

/// The text, blanks for unsafe characters, with every byte passed through `change`, which appends
/// to the result.
template <class Change>
std::string changed(std::string_view text, Change&& change) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t unsafe = unsafe_bytes(text), size = unsafe > 0 ? unsafe : utf8_bytes(text);
    if (unsafe > 0) change(result, ' ');
    for (const char c : text.substr(0, unsafe > 0 ? 0 : size)) change(result, c);
    text.remove_prefix(size);
  }
  return result;
}

using Replacement = std::pair<char, std::string_view>;

/// The replacement of a character; empty where it has none.
std::string_view replacement_of(char c, std::span<const Replacement> signs) {
  const auto found = std::ranges::find(signs, c, &Replacement::first);
  return found == signs.end() ? std::string_view() : found->second;
}

std::string replaced(std::string_view text, std::initializer_list<Replacement> signs) {
  return changed(text, [&](std::string& out, char c) {
    const std::string_view other = replacement_of(c, signs);
    other.empty() ? static_cast<void>(out += c) : static_cast<void>(out += other);
  });
}

/// A character that JSON may write as \u and four digits, as UTF-8. (Those of two such escapes are
/// not unsafe.)
std::string utf8_of(unsigned code) {
  const auto byte = [](unsigned value) { return static_cast<char>(value); };
  const char last = byte(0x80 | (code & 0x3f));
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), last};
  return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), last};
}

/// JSON whose texts have blanks for unsafe characters that were written as \u202e.
std::string without_unsafe_escapes(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  while (!json.empty()) {
    std::size_t size = json.front() == '\\' ? 2 : 1;
    unsigned code = 0;
    bool blank = false;
    if (json.starts_with("\\u") && json.size() >= 6) {
      size = 6;
      std::from_chars(json.data() + 2, json.data() + 6, code, 16);
      blank = (code < 0xd800 || code > 0xdfff) && unsafe_bytes(utf8_of(code)) > 0;
    }
    result += blank ? " " : json.substr(0, size);
    json.remove_prefix(std::min(size, json.size()));
  }
  return result;
}

using Json = nlohmann::ordered_json;

std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_string()) return csv_cell(value.get<std::string>());
  if (value.is_array()) return csv_cell(join(value.get<std::vector<std::string>>(), "; "));
  // The shortest text that reads back as the same number.
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

}  // namespace

std::string html_escape(std::string_view text) {
  return replaced(text,
                  {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string script_json(std::string_view json) {
  // Outside of texts JSON has none of these characters; inside, an escape means the same.
  return replaced(without_unsafe_escapes(json),
                  {{'&', "\\u0026"}, {'<', "\\u003c"}, {'>', "\\u003e"}});
}

std::string markdown_escape(std::string_view text) {
  // Parentheses, plus and number signs mean something only in places where text is not.
  constexpr std::string_view kSpecial = "\\`*_[]<>!|~&$";
  return changed(text, [&](std::string& out, char c) {
    if (kSpecial.find(c) != std::string_view::npos) out += '\\';
    out += c;
  });
}

std::string latex_escape(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kSigns{
      {{"\xc3\x97", "$\\times$"},
       {"\xe2\x80\x93", "--"},
       {"\xc2\xb1", "$\\pm$"},
       {"\xc2\xb5", "$\\mu$"}}};
  // Behind the end of a row, brackets and an asterisk would be its arguments.
  constexpr std::array<Replacement, 17> kCommands{{{'#', "\\#"},
                                                   {'$', "\\$"},
                                                   {'%', "\\%"},
                                                   {'&', "\\&"},
                                                   {'_', "\\_"},
                                                   {'{', "\\{"},
                                                   {'}', "\\}"},
                                                   {'\\', "\\textbackslash{}"},
                                                   {'~', "\\textasciitilde{}"},
                                                   {'^', "\\textasciicircum{}"},
                                                   {'<', "\\textless{}"},
                                                   {'>', "\\textgreater{}"},
                                                   {'|', "\\textbar{}"},
                                                   {'"', "\\textquotedbl{}"},
                                                   {'[', "{[}"},
                                                   {']', "{]}"},
                                                   {'*', "{*}"}}};
  std::string result;
  while (!text.empty()) {
    const auto sign = std::ranges::find_if(
        kSigns, [&](const auto& pair) { return text.starts_with(pair.first); });
    if (sign != kSigns.end()) {
      result += sign->second;
      text.remove_prefix(sign->first.size());
      continue;
    }
    const char c = text.front();
    text.remove_prefix(1);
    const auto byte = static_cast<unsigned char>(c);
    const std::string_view command = replacement_of(c, kCommands);
    if (byte >= 0x80) {  // one '?' a character: bytes that go on with one are left out
      if (byte >= 0xc0) result += '?';
    } else if (byte < ' ' || byte == 0x7f) {
      result += ' ';
    } else if (!command.empty()) {
      result += command;
    } else {
      result += c;
      // TeX joins two of them into another sign.
      if ((c == '`' || c == '\'' || c == '-') && text.starts_with(c)) result += "{}";
    }
  }
  return result;
}

std::string each_between(const std::vector<std::string>& texts,
                         std::string (*escape)(std::string_view), std::string_view before,
                         std::string_view behind) {
  std::string result;
  for (const std::string& text : texts) ((result += before) += escape(text)) += behind;
  return result;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

Csv::Csv(const std::vector<CsvColumn>& columns) {
  for (const auto& [name, path] : columns) {
    paths_.emplace_back(path.empty() ? "/" + name : path);
    text_ += (paths_.size() > 1 ? "," : "") + name;
  }
  text_ += "\r\n";
}

void Csv::add(const Json& row) {
  for (const Json::json_pointer& path : paths_) {
    if (&path != &paths_.front()) text_ += ',';
    if (row.contains(path)) text_ += field(row.at(path));
  }
  text_ += "\r\n";
}

}  // namespace cputrain::report
