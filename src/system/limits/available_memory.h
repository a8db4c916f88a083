#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace cputrain::system {

/// Bytes that programs on this machine, or in this container, can still get without swapping;
/// nothing where the system does not report it.
std::optional<std::size_t> available_memory();

/// Whether these are fewer because a control group (system/limits/control_group.h) allows no more.
bool group_limits_memory();

/// The innermost control group that limits this process's memory, by the kernel's number; 0: none.
/// Ranks of a machine that are in different ones, such as containers, have what each allows.
std::uint64_t memory_group();

/// After "300 MB are available", where that is so.
inline constexpr const char* kInControlGroup =
    " in its control group (the limit of a container or batch job)";

/// Bytes that this process holds for itself alone right now; 0 where the system does not report it.
std::size_t own_memory();

}  // namespace cputrain::system
