#include "system/cache_folder.h"

#include <cstdlib>

namespace cputrain::system {
namespace {

std::filesystem::path folder_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

}  // namespace

std::optional<std::filesystem::path> cache_folder() {
  std::filesystem::path cache = folder_in("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {  // which the XDG specification demands
    const std::filesystem::path home = folder_in("HOME");
    if (!home.is_absolute()) return std::nullopt;
    cache = home / ".cache";
  }
  return cache / "cputrain";
}

}  // namespace cputrain::system
