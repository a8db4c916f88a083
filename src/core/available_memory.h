#pragma once

#include <cstddef>
#include <optional>

namespace cputrain {

/// Bytes that programs on this machine, or in this container, can still get without swapping;
/// nothing where the system does not say.
std::optional<std::size_t> available_memory();

}  // namespace cputrain
