#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "job/session.h"
#include "job/training_flags.h"
#include "job/training_setup.h"

namespace cputrain {

inline constexpr const char* kWeightsName = "weights.safetensors";
inline constexpr const char* kProfileName = "profile.json";
inline constexpr const char* kLimitsName = "limits.json";
inline constexpr const char* kMlperfName = "mlperf.log";
/// What a run may write into its folder.
inline constexpr const char* kRunFiles[] = {"config.json",   "environment.json", "metrics.jsonl",
                                            "training.csv",  "history.json",     kWeightsName,
                                            kProfileName,    kLimitsName,        kMlperfName,
                                            "dawnbench.tsv", "dawnbench.json"};

/// Figures or weights; a run that failed before its first step left neither.
bool holds_run(const std::filesystem::path& folder);

/// Makes the folder of this run (on rank 0): --out, or runs/<date>-<model>-np<ranks>-b<batch>.
/// What killed runs left of files that they were writing goes. Error(usage) where --out holds a run
/// already and --overwrite was not given; Error(output) where it cannot be written.
std::filesystem::path make_run_folder(const TrainingSpec&, int ranks);

/// Takes the figures of the run that --overwrite replaces out of its folder: a new run's must not
/// mix with them. Its weights stay until the new run's take their place and name.
void clear_run_folder(const std::filesystem::path& folder);

/// Every figure that the run works with, as flags: `--config config.json` repeats it.
nlohmann::ordered_json effective_flags(const TrainingSpec&);

/// The same flags with paths from the root, so that they mean the same in any working folder.
nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags);

/// Where and with what the run was made: host, processor, libraries, ranks and threads, time.
nlohmann::ordered_json environment_json(const Session&, const Services&, int micro_batch);

}  // namespace cputrain
