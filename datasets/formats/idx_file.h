#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cputrain::datasets {

/// Bytes with their extents, as IDX files store them.
struct IdxArray {
  std::vector<std::size_t> extents;
  std::vector<std::uint8_t> values;
};

/// Reads an IDX file of unsigned bytes with `dimensions` extents; gzip is recognised by content.
/// Throws Error(data) naming the file when anything is not as it must be, one byte too many
/// included. Never holds more than the file really has.
IdxArray read_idx(const std::string& path, std::size_t dimensions);

}  // namespace cputrain::datasets
