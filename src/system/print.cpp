#include "system/print.h"

#include <cstdio>

namespace cputrain::system {

void print_lines(std::string_view text) {
  const std::string safe = escaped_lines(text);
  std::fwrite(safe.data(), 1, safe.size(), stdout);
}

}  // namespace cputrain::system
