#include "data/classes/alike_names.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <unordered_map>

#include "core/text.h"

namespace cputrain::data {
namespace {

/// utf8proc's form of a text; the text itself where that is not UTF-8.
std::string mapped(std::string_view text, int options) {
  utf8proc_uint8_t* made = nullptr;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const auto size = utf8proc_map(bytes, static_cast<utf8proc_ssize_t>(text.size()), &made,
                                 static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size < 0) return std::string(text);
  return {reinterpret_cast<const char*>(made), static_cast<std::size_t>(size)};
}

bool is_blank(std::uint32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_CC:
      return true;
    default:
      return false;
  }
}

/// Each byte that is not UTF-8 is one.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(utf8_bytes(text), 1);
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return parts;
}

/// Without blanks at either end, and with one for several.
std::string without_blanks(std::string_view text) {
  std::string result;
  bool blank = false;
  for (const std::string_view character : characters(text)) {
    if (is_utf8(character) && is_blank(code_point(character))) {
      blank = !result.empty();
    } else {
      if (blank) result += ' ';
      blank = false;
      result += character;
    }
  }
  return result;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// With an escape for all but printed characters of ASCII.
std::string spelled(std::string_view character) {
  const std::uint32_t code = code_point(character);
  if (code > 0x20 && code < 0x7f) return std::string(character);
  if (character.size() == 1) return fmt::format("\\x{:02x}", code);
  return code > 0xffff ? fmt::format("\\U{:08x}", code) : fmt::format("\\u{:04x}", code);
}

/// Characters that all have in common at their beginning, or at their end.
template <class At>
std::size_t common(const std::vector<std::vector<std::string_view>>& texts, std::size_t most,
                   At at) {
  std::size_t count = 0;
  while (count < most && std::ranges::all_of(texts, [&](const auto& text) {
           return at(text, count) == at(texts.front(), count);
         })) {
    ++count;
  }
  return count;
}

/// Each name in quotes; characters in which they differ stand as escapes.
std::vector<std::string> spelled_apart(std::span<const std::string> names) {
  std::vector<std::vector<std::string_view>> texts;
  std::size_t shortest = names.front().size();
  for (const std::string& name : names) {
    texts.push_back(characters(name));
    shortest = std::min(shortest, texts.back().size());
  }
  const std::size_t begin =
      common(texts, shortest, [](const auto& text, std::size_t i) { return text[i]; });
  const std::size_t end = common(texts, shortest - begin, [](const auto& text, std::size_t i) {
    return text[text.size() - 1 - i];
  });
  std::vector<std::string> shown;
  for (const auto& characters : texts) {
    std::string text;
    for (std::size_t i = 0; i < characters.size(); ++i) {
      const bool same = i < begin || i >= characters.size() - end;
      text += same ? escaped(characters[i]) : spelled(characters[i]);
    }
    shown.push_back(fmt::format("'{}'", printable(text)));
  }
  return shown;
}

using Places = std::unordered_map<std::string, std::size_t>;

/// Places by key of the names that are still free; of a key that two have, `none`.
Places free_keys(std::span<const std::string> names, const std::vector<bool>& taken,
                 std::size_t none) {
  Places places;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [place, is_new] = places.emplace(alike_key(names[i]), taken[i] ? none : i);
    if (!is_new) place->second = none;
  }
  return places;
}

}  // namespace

std::string alike_key(std::string_view name) {
  // Unicode's NFKC_Casefold, which leaves out what is not seen ("default ignorable").
  constexpr int kFold =
      UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE;
  std::string key = without_blanks(mapped(name, kFold));
  const bool digits = std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
  if (digits && !key.empty()) key.erase(0, std::min(key.find_first_not_of('0'), key.size() - 1));
  return key;
}

std::string composed(std::string_view name) {
  return is_ascii(name) ? std::string(name) : mapped(name, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

std::vector<std::vector<std::string>> alike_names(std::span<const std::string> names) {
  std::unordered_map<std::string, std::vector<std::size_t>> by_key;
  for (std::size_t i = 0; i < names.size(); ++i) by_key[alike_key(names[i])].push_back(i);
  std::map<std::size_t, std::vector<std::string>> groups;  // by their first name's place
  for (const auto& [key, places] : by_key) {
    if (places.size() < 2) continue;
    for (const std::size_t place : places) groups[places.front()].push_back(names[place]);
  }
  std::vector<std::vector<std::string>> result;
  for (auto& [place, group] : groups) result.push_back(std::move(group));
  return result;
}

std::string shown_apart(std::span<const std::string> names) {
  const std::vector<std::string> texts = spelled_apart(names);
  std::string shown = texts.front();
  for (std::size_t i = 1; i < texts.size(); ++i) {
    shown += (i + 1 == texts.size() ? " and " : ", ") + texts[i];
  }
  return shown;
}

std::string alike_warning(std::span<const std::string> names) {
  constexpr std::size_t kShown = 5;
  const auto groups = alike_names(names);
  if (groups.empty()) return {};
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(kShown, groups.size()); ++i) {
    parts.push_back(shown_apart(groups[i]));
  }
  if (groups.size() > kShown) parts.push_back(fmt::format("{} more", groups.size() - kShown));
  return fmt::format(
      "names of classes look alike, and each is a class of its own: {} (they differ in blanks, "
      "capitals, invisible characters, accents or zeros alone); give one name to what is one class",
      join(parts, "; "));
}

NameMatch match_names(std::span<const std::string> names, std::span<const std::string> among) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < among.size(); ++i) places.emplace(among[i], i);
  NameMatch match;
  match.place.resize(names.size());
  std::vector<bool> found(names.size()), taken(among.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto place = places.find(names[i]);
    if (place == places.end()) continue;
    match.place[i] = place->second;
    found[i] = taken[place->second] = true;
  }
  if (std::ranges::count(found, false) == 0) return match;
  const Places keys = free_keys(names, found, names.size());
  const Places others = free_keys(among, taken, among.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (found[i]) continue;
    const std::string key = alike_key(names[i]);
    const auto other = others.find(key);
    if (keys.at(key) != i || other == others.end() || other->second == among.size()) continue;
    match.place[i] = other->second;
    match.alike.push_back(i);
  }
  return match;
}

std::string alike_text(const NameMatch& match, std::span<const std::string> names,
                       std::span<const std::string> among) {
  std::vector<std::string> parts;
  for (const std::size_t i : match.alike) {
    const std::vector<std::string> pair{names[i], among[*match.place[i]]};
    const std::vector<std::string> shown = spelled_apart(pair);
    parts.push_back(fmt::format("{} as {}", shown[0], shown[1]));
  }
  return first_few(parts);
}

}  // namespace cputrain::data
