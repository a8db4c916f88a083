#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cputrain::datasets {

/// Numbers in files, the lowest byte first, at offsets that the caller has checked.
constexpr std::int64_t little_endian_16(std::span<const std::uint8_t> file, std::size_t at) {
  return file[at] | file[at + 1] << 8;
}
constexpr std::int64_t little_endian_24(std::span<const std::uint8_t> file, std::size_t at) {
  return little_endian_16(file, at) | file[at + 2] << 16;
}
constexpr std::uint32_t little_endian_32(std::span<const std::uint8_t> file, std::size_t at) {
  return static_cast<std::uint32_t>(little_endian_24(file, at)) |
         static_cast<std::uint32_t>(file[at + 3]) << 24;
}

}  // namespace cputrain::datasets
