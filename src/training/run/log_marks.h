#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace cputrain::training {

/// How long the logs of a run are now, which only ever grow: {"metrics.jsonl": 1234, ...}, in
/// bytes, those of sub-folders (TensorBoard's) as "train/events...". A checkpoint keeps it.
nlohmann::ordered_json log_marks(const std::filesystem::path& run);

/// Cuts the logs of a run where a checkpoint left them, each in one call of the system, and removes
/// logs that were begun after it. What is left has nothing about later steps; what it has about
/// earlier ones is as it was. May be interrupted and done again. Returns what users should know:
/// logs that are shorter than they were; they end with a whole line then. Marks are a file's words:
/// Error(data) where they name anything but such logs, and then nothing is cut. Error(output).
std::vector<std::string> cut_logs(const std::filesystem::path& run,
                                  const nlohmann::ordered_json& marks);

/// Whether marks are such as log_marks() makes. Error(data).
void check_marks(const nlohmann::ordered_json& marks);

/// Puts what was written of the logs so far on disk: a checkpoint that survives a power cut must
/// find the lines of its steps. Error(output).
void sync_logs(const std::filesystem::path& run);

}  // namespace cputrain::training
