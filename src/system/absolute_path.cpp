#include "system/absolute_path.h"

#include <filesystem>

namespace cputrain::system {

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (error || path.empty()) return path;
  const auto real = std::filesystem::weakly_canonical(absolute, error);
  return (error ? absolute : real).string();  // a loop of links, a folder that may not be read
}

}  // namespace cputrain::system
