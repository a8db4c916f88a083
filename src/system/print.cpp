#include "system/print.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/text.h"
#include "system/output.h"
#include "system/redrawn_line.h"

namespace cputrain::system {
namespace {

std::string with_coloured_warnings(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  for (std::string& line : lines) {
    if (line.find_first_not_of(' ') == line.find("warning:")) line = coloured(line);
  }
  return join(lines, "\n");
}

}  // namespace

void print_lines(std::string_view text) {
  std::string safe = escaped_lines(text);
  if (safe.find("warning:") != std::string::npos && shows_colours(STDOUT_FILENO)) {
    safe = with_coloured_warnings(safe);
  }
  put(stdout, safe, Worth::result);
}

void tell(std::string_view line) {
  std::string safe = escaped(line);
  if (::isatty(STDERR_FILENO)) {
    const std::size_t bar = take_unended_line(), width = columns_of(safe);
    if (shows_colours(STDERR_FILENO)) safe = coloured(safe);
    if (bar > 0) {  // it gives way, and is drawn anew below
      const std::size_t covered = std::min(bar, line_columns(STDERR_FILENO).value_or(bar + 1) - 1);
      safe.insert(0, "\r").append(covered > width ? covered - width : 0, ' ');
    }
  }
  safe += "\n";
  put(stderr, safe, Worth::told);
}

bool shows_colours(int descriptor) {
  const char* const refused = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  if ((refused && *refused) || !terminal || std::string_view(terminal) == "dumb") return false;
  if (!::isatty(descriptor)) return false;
  return descriptor != STDOUT_FILENO || screen_columns(descriptor);
}

std::string coloured(std::string_view line) {
  constexpr std::string_view kWarning = "warning:", kError = "cputrain:";
  constexpr std::string_view kRed = "\x1b[31m", kYellow = "\x1b[33m", kPlain = "\x1b[0m";
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  std::string text(line.substr(0, begin));
  line.remove_prefix(begin);
  if (line.starts_with(kWarning)) {
    text.append(kYellow).append(kWarning).append(kPlain);
    return text.append(line.substr(kWarning.size()));
  }
  if (line.starts_with(kError)) return text.append(kRed).append(line).append(kPlain);
  return text.append(line);
}

}  // namespace cputrain::system
