#pragma once

#include <filesystem>

#include "job/training_plan.h"

namespace cputrain::run {

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

/// Makes the folder of this run (on rank 0; empty on others): --out, or
/// runs/<date>-<model>-np<ranks>-b<batch>, with config.json and environment.json in it, which a run
/// that is to be replaced keeps until replace_run(). Error(usage) where --out holds a run already
/// and --overwrite was not given; Error(output) where it cannot be written.
std::filesystem::path open_run_folder(const job::Session&, const job::TrainingPlan&);

/// Takes the figures of the run that --overwrite replaces out of its folder: a new run's must not
/// mix with them. Its weights stay until the new run's take their place and name.
void clear_run_folder(const std::filesystem::path& folder);

/// The same where the folder holds a run, and describes this one there. On rank 0.
void replace_run(const job::Session&, const job::TrainingPlan&,
                 const std::filesystem::path& folder);

/// limits.json: what these processors and their memory can do, measured in the same places, a
/// moment before the training. Collective. Error(output).
void write_limits(const job::Session&, const std::filesystem::path& folder);

}  // namespace cputrain::run
