#include "system/redrawn_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "system/output.h"

namespace cputrain::system {
namespace {

std::atomic<std::size_t> unended = 0;

}  // namespace

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
  const std::size_t width = columns_of(line), old = std::min(standing(), space().value_or(drawn_));
  std::string text = "\r";
  text.append(line).append(old > width ? old - width : 0, ' ').append(end);
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

std::optional<std::size_t> line_columns(int descriptor) {
  constexpr std::size_t kUsual = 80;
  if (!::isatty(descriptor)) return std::nullopt;
  if (const auto columns = screen_columns(descriptor)) return columns;
  return columns_of_environment().value_or(kUsual);
}

}  // namespace cputrain::system
