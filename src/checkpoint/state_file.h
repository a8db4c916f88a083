#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "compute/backend.h"
#include "loop/progress.h"

/// state.json of a checkpoint: {"format": 2, "progress": {...}, "findings_of": "...", ...facts}.
namespace cputrain::checkpoint {

/// Which kernels a program's tuned methods are of.
std::string kernels_of(const compute::Backend&);

/// Writes the file, with fsync. Error(output).
void write_state(const std::filesystem::path& folder, const loop::Progress&,
                 const std::string& tuned_for, const nlohmann::ordered_json& facts);

/// Its content.
struct SavedState {
  loop::Progress progress;
  std::string tuned_for;
};
/// Error(data).
SavedState read_state(const std::filesystem::path& folder);

/// The facts of a checkpoint's state.json that are not its progress. Error(data). Of one rank.
nlohmann::ordered_json read_facts(const std::filesystem::path& folder);
/// Its progress. Error(data).
loop::Progress read_progress(const std::filesystem::path& folder);

}  // namespace cputrain::checkpoint
