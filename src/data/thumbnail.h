#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cputrain::data {

/// A small image as a file, for a page.
struct Thumbnail {
  std::string type;  ///< "image/png"
  std::vector<std::byte> file;
  int width = 0, height = 0;
};

}  // namespace cputrain::data
