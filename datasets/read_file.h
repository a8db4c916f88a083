#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace cputrain {

struct FileContent {
  ReadResult result;  ///< ok, unreadable, empty or too_large
  std::vector<std::uint8_t> bytes;
};

/// A whole regular file of at most `limit` bytes.
FileContent read_file(const std::string& path, std::size_t limit);

}  // namespace cputrain
