#include "cli/help/wrapped_text.h"

#include <unistd.h>

#include <algorithm>

#include "core/text.h"
#include "system/terminal/columns.h"

namespace cputrain::cli {

std::string wrapped(std::string_view text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t column = indent;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t width = columns_of(word);
    if (column > indent && column + 1 + width > columns) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += " ";
      ++column;
    }
    result += word;
    column += width;
  }
  return result;
}

std::string wrapped_command(const std::vector<std::string>& words, std::size_t indent,
                            std::size_t columns) {
  // A flag and its value stay together.
  std::vector<std::string> pieces;
  for (const std::string& word : words) {
    const bool value = !pieces.empty() && !word.starts_with("-") &&
                       pieces.back().starts_with("-") &&
                       pieces.back().find(' ') == std::string::npos;
    if (value) {
      pieces.back() += " " + word;
    } else {
      pieces.push_back(word);
    }
  }
  constexpr std::string_view kGoesOn = " \\";
  std::string result(indent, ' ');
  std::size_t column = indent;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::size_t after = i + 1 == pieces.size() ? 0 : kGoesOn.size();
    if (i > 0 && column + 1 + pieces[i].size() + after > columns) {
      result += std::string(kGoesOn) + "\n" + std::string(indent + 2, ' ');
      column = indent + 2;
    } else if (i > 0) {
      result += " ";
      ++column;
    }
    result += pieces[i];
    column += pieces[i].size();
  }
  return result;
}

std::size_t help_columns() {
  constexpr std::size_t kUsual = 80, kLeast = 60, kMost = 120;
  auto columns = system::columns_of_environment();
  if (!columns) columns = system::screen_columns(STDOUT_FILENO);
  return std::clamp(columns.value_or(kUsual), kLeast, kMost);
}

}  // namespace cputrain::cli
