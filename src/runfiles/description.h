#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

/// config.json and environment.json, which say what the other files of a run's folder are of: read
/// here for all.
namespace cputrain::runfiles {

inline constexpr const char* kConfigName = "config.json";            ///< the flags of a run
inline constexpr const char* kEnvironmentName = "environment.json";  ///< machine, build, ranks

/// The object in either file, which may be hostile. Error(data), or the error of the library, where
/// it is missing or damaged.
nlohmann::json read_config(const std::filesystem::path& run);
nlohmann::json read_environment(const std::filesystem::path& run);

}  // namespace cputrain::runfiles
