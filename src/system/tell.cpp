#include "system/tell.h"

#include <cstdio>
#include <string>

#include "core/text.h"

namespace cputrain::system {

void tell(std::string_view line) {
  const std::string safe = escaped(line) + "\n";
  std::fwrite(safe.data(), 1, safe.size(), stderr);
}

}  // namespace cputrain::system
