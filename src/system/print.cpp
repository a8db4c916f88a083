#include "system/print.h"

#include <unistd.h>

#include <vector>

#include "system/tell.h"
#include "system/terminal/output.h"

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

}  // namespace cputrain::system
