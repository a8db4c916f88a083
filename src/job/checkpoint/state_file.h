#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "job/session/session.h"
#include "train/progress.h"

/// state.json of a checkpoint: {"format": 2, "progress": {...}, "findings_of": "...", ...facts}.
namespace cputrain::job {

/// Which kernels a program's findings are of.
std::string findings_of(const Session&);

/// Writes the file, with fsync. Error(output).
void write_state(const std::filesystem::path& folder, const train::Progress&,
                 const std::string& findings_of, const nlohmann::ordered_json& facts);

/// Its content.
struct SavedState {
  train::Progress progress;
  std::string findings_of;
};
/// Error(data).
SavedState read_state(const std::filesystem::path& folder);

}  // namespace cputrain::job
