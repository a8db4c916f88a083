#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compute/backend.h"
#include "loop/progress.h"

/// state.json of a checkpoint: {"format": 2, "progress": {...}, "findings_of": "...", ...facts}.
namespace cputrain::checkpoint {

inline constexpr int kStateFormat = 2;

/// Which kernels a program's tuned methods are of.
std::string kernels_of(const compute::Backend&);

/// Writes the file, with fsync. Error(output).
void write_state(const std::filesystem::path& folder, const loop::Progress&,
                 const std::string& tuned_for, const nlohmann::ordered_json& facts);

/// Its content.
struct SavedState {
  loop::Progress progress;
  std::string tuned_for{};  ///< the kernels that its tuned methods are of; empty where not known
};
/// Error(data).
SavedState read_state(const std::filesystem::path& folder);

/// The facts of a checkpoint's state.json that are not its progress. Error(data). Of one rank.
nlohmann::ordered_json read_facts(const std::filesystem::path& folder);
/// Its progress. Error(data).
loop::Progress read_progress(const std::filesystem::path& folder);

/// Every number comes back as the same bits: those that are not finite are texts, "inf", "-inf" or
/// "nan:" and the bits in hexadecimal.
nlohmann::ordered_json to_json(const loop::Progress&);
/// Error(data) names the field that is missing, not known or out of range.
loop::Progress progress_of(const nlohmann::ordered_json&);

/// The text of a state.json, which may be hostile, as an object of that format. Error(data)
/// without the file's name.
nlohmann::ordered_json parse_state(const std::string& text);
/// The progress in it. Error(data).
loop::Progress progress_of_state(const nlohmann::ordered_json& state);

}  // namespace cputrain::checkpoint
