#include "system/print.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "system/output.h"

namespace cputrain::system {
namespace {

/// Columns of the line that was drawn on a terminal and not ended.
std::atomic<std::size_t> unended = 0;

/// What a line that is redrawn may take: the terminal's width, else COLUMNS, else 80 on a terminal
/// without a width. Nothing where there is no terminal.
std::optional<std::size_t> line_columns(int descriptor) {
  constexpr std::size_t kUsual = 80;
  if (!::isatty(descriptor)) return std::nullopt;
  if (const auto columns = screen_columns(descriptor)) return columns;
  return columns_of_environment().value_or(kUsual);
}

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
  std::string text = in_lines_of(STDERR_FILENO, escaped(line));
  if (::isatty(STDERR_FILENO)) {
    const std::size_t first = std::min(text.find('\n'), text.size());
    const std::size_t bar = take_unended_line();
    if (bar > 0) {  // it gives way, and is drawn anew below
      const std::size_t covered = std::min(bar, line_columns(STDERR_FILENO).value_or(bar + 1) - 1);
      const std::size_t width = columns_of(std::string_view(text).substr(0, first));
      text.insert(first, covered > width ? covered - width : 0, ' ');
    }
    if (shows_colours(STDERR_FILENO)) text = coloured(text);
    if (bar > 0) text.insert(0, "\r");
  }
  text += "\n";
  put(stderr, text, Worth::told);
}

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

std::string in_lines_of(int descriptor, std::string_view line) {
  constexpr std::size_t kHang = 2;  // of further lines, beside the first one
  auto columns = screen_columns(descriptor);
  if (!columns && ::isatty(descriptor)) columns = columns_of_environment();
  if (!columns) return std::string(line);
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  // One column stays free, as of lines that are redrawn.
  return std::string(line.substr(0, begin)) +
         wrapped(line.substr(begin), begin + kHang, *columns - 1);
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

RedrawnLine::RedrawnLine(std::FILE* stream)
    : RedrawnLine(stream, [stream] { return line_columns(::fileno(stream)); }) {}

RedrawnLine::RedrawnLine(std::FILE* stream, Columns columns)
    : stream_(stream), on_terminal_(::isatty(::fileno(stream))), columns_(std::move(columns)) {}

std::optional<std::size_t> RedrawnLine::space() const {
  const auto columns = columns_();
  return columns ? std::optional(std::max<std::size_t>(*columns, 2) - 1) : std::nullopt;
}

void RedrawnLine::draw(std::string_view line) {
  const auto most = space();
  const std::string cut = most && columns_of(line) > *most ? in_columns(line, *most) : "";
  write(cut.empty() ? line : cut, "");
}

void RedrawnLine::finish(std::string_view line) { write(line, "\n"); }

void RedrawnLine::leave() {
  const bool stands = standing() > 0;
  drawn_ = 0;
  if (!stands) return;
  put(stream_, "\n");
  if (on_terminal_) unended = 0;
}

std::size_t RedrawnLine::standing() const {
  return on_terminal_ ? std::min<std::size_t>(drawn_, unended) : drawn_;
}

void RedrawnLine::write(std::string_view line, std::string_view end) {
  const std::string_view first = line.substr(0, line.find('\n')), rest = line.substr(first.size());
  const std::size_t width = columns_of(first), old = std::min(standing(), space().value_or(drawn_));
  std::string text = "\r";
  text.append(first).append(old > width ? old - width : 0, ' ').append(rest).append(end);
  // What is left out leaves the line as it is.
  if (!put(stream_, text, end.empty() ? Worth::redrawn : Worth::line)) return;
  drawn_ = end.empty() ? width : 0;
  if (on_terminal_) unended = drawn_;
}

std::size_t take_unended_line() { return unended.exchange(0); }

std::optional<std::size_t> screen_columns(int descriptor) {
  winsize size{};
  if (!::isatty(descriptor) || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return std::nullopt;
  return size.ws_col > 0 ? std::optional<std::size_t>(size.ws_col) : std::nullopt;
}

std::optional<std::size_t> columns_of_environment() {
  const char* const text = std::getenv("COLUMNS");
  if (!text) return std::nullopt;
  const std::string_view word = text;
  std::size_t columns = 0;
  std::from_chars(word.data(), word.data() + word.size(), columns);
  return columns > 0 ? std::optional(columns) : std::nullopt;
}

}  // namespace cputrain::system
