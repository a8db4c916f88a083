#pragma once

#include <cstdint>

#include "system/bounded_file.h"

namespace cputrain::checkpoint {

/// CRC-32C of all bytes that a file had when it was opened. std::runtime_error where it cannot be
/// read or has become shorter.
std::uint32_t checksum_of(const system::RegularFile&);

}  // namespace cputrain::checkpoint
