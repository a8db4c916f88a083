#pragma once

#include <cstdint>
#include <span>

namespace cputrain::datasets {

enum class DeflateStream { whole, ends_early, damaged };

/// Whether a zlib stream holds at least `bytes` bytes and has the checksum of what it holds. To be
/// asked before libtiff decodes it: the decoder that libtiff prefers makes up the end of some
/// streams that were cut, and the other one does not look at the checksum. Stops behind `most`
/// bytes.
DeflateStream check_deflate(std::span<const std::uint8_t> stream, std::uint64_t bytes,
                            std::uint64_t most);

}  // namespace cputrain::datasets
