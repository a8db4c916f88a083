#pragma once

#include <filesystem>
#include <optional>

namespace cputrain::system {

/// "cputrain" in the user's cache folder ($XDG_CACHE_HOME, else ~/.cache), which need not exist;
/// nothing where the environment names none.
std::optional<std::filesystem::path> cache_folder();

}  // namespace cputrain::system
