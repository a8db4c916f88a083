#include "core/shell_words.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/text.h"

namespace cputrain {

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
