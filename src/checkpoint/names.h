#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace cputrain::checkpoint {

/// "ckpt-000000120".
std::string name_of(std::uint64_t step);

/// The step of a checkpoint's name, which is what name_of() makes of it.
std::optional<std::uint64_t> step_of(std::string_view name);

/// A new path in a run for what is written or removed: ".ckpt-000000120.tmp4711-99". It is hidden,
/// so that ckpt-* meets what is whole and nothing else.
std::filesystem::path new_aside(const std::filesystem::path& run, std::uint64_t step);

/// Whether that is such a name.
bool is_aside(std::string_view name);

/// Gives a checkpoint another name, which is free; where the file system cannot rename it, it is
/// copied. Error(output).
void move_folder(const std::filesystem::path& from, const std::filesystem::path& to);

/// Removes a folder or a link to one. What cannot be removed stays.
void remove_folder(const std::filesystem::path&) noexcept;

}  // namespace cputrain::checkpoint
