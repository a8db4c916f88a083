#include "system/terminal/columns.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cputrain::system {

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
