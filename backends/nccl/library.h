#pragma once

#include <cstddef>
#include <string>

#include "backends/nccl/calls.h"

namespace cputrain::nccl {

/// NCCL as this process has it, or why it has none.
struct Library {
  const Calls* calls = nullptr;
  int version = 0;  ///< 22809 for 2.28.9
  std::string file{};
  std::string why_none{}, remedy{};
};

/// The library of this process: libnccl.so.2 where the system's loader finds it, which is loaded
/// with the first call and stays. Before that, what would change bits is turned off in the
/// environment, unless somebody has set it.
const Library& library();

/// What looking for the functions in this file gave; for library() and tests.
Library load(const std::string& file);

/// The same for a table that is there: a version is refused that these calls do not suit.
Library checked(const Calls&, std::string file);

/// What somebody has turned on that changes bits from call to call: "NCCL_NVLS_ENABLE=1"; or "".
/// Behind library().
std::string varying_bits();

/// Bytes that NCCL takes of each device for itself, an estimate from above: of sums over so many
/// ranks, with its default settings but without NVLink SHARP.
std::size_t estimated_memory(int ranks);

/// "2.28.9"
std::string version_text(int version);

}  // namespace cputrain::nccl
