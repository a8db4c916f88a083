#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace cputrain::datasets {

/// The values of the first directory's tags that lie outside of it.
struct TagValues {
  std::uint64_t stored = 0;  ///< bytes in the file, where values may lie on each other
  std::uint64_t read = 0;    ///< bytes that libtiff takes at most
};

/// Nothing where the first directory or a value is not in the file. They often lie behind the
/// pixels, and libtiff goes on without a tag whose value is cut off: without a palette in grey.
std::optional<TagValues> tag_values(std::span<const std::uint8_t> file);

}  // namespace cputrain::datasets
