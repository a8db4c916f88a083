#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/folder.h"
#include "comm/watch/watch.h"
#include "system/file_lock.h"
#include "system/placement/placement.h"
#include "training/plan/training_plan.h"
#include "training/weights/named_weights.h"

namespace cputrain::training {

inline constexpr const char* kProfileName = "profile.json";
inline constexpr const char* kLimitsName = "limits.json";
inline constexpr const char* kFirstWeightsName = "first-weights.csv";    ///< what --weights gave
inline constexpr const char* kEvaluationsName = "evaluations.jsonl";     ///< `eval` adds to it
inline constexpr const char* kAveragesName = "weights-ema.safetensors";  ///< with --ema
using watch::kStallsName;
/// What a run and its evaluations may write into its folder.
std::vector<std::string> run_files();
/// Whether a file would take the place of one that a run keeps, or may yet write: a result must
/// not.
bool is_of_run(const std::filesystem::path& file);
inline constexpr const char* kEventFolders[] = {"train", "validation"};  ///< TensorBoard's

/// The step of the newest checkpoint that has its list of files, which is written last; no other of
/// its bytes is read.
std::optional<std::uint64_t> newest_checkpoint(const std::filesystem::path& folder);

/// The folder of a run while this process works in it. Of rank 0; on others it is empty.
struct RunFolder {
  std::filesystem::path path{};
  std::optional<system::FileLock> lock{};  ///< held for a path that is not empty

  /// Whether a checkpoint is one of the run's own.
  bool has(const std::filesystem::path& checkpoint) const;
};

/// Takes the folder of --out, where it is there and may be another training's (--resume,
/// --overwrite): a file in it is locked for this process' life. Waits up to ten seconds for a job's
/// ranks that are ending, and prints it. Error(usage) where another training keeps it.
RunFolder take_run_folder(const Session&, const TrainingFlags&);

/// Makes the folder of this run: --out, or runs/<date>-<model>-np<ranks>-b<batch>, unless it was
/// taken already, with config.json and environment.json in it, which a run that is to be replaced
/// keeps until its first step. Error(usage) where --out holds a run already and neither --overwrite
/// nor --resume was given; Error(output) where it cannot be written. From now on stalls of this job
/// are written there, too. Collective.
void open_run_folder(const Session&, const TrainingPlan&, RunFolder&);

/// Takes the figures of the run that --overwrite replaces out of its folder: a new run's must not
/// mix with them. Its weights stay until the new run's take their place and name.
void clear_run_folder(const std::filesystem::path& folder);

/// Before the first step: config.json and environment.json of this start, where it goes on with a
/// run; of a run that it replaces what does not belong to it any more is cleared. On rank 0.
void describe_run(const Session&, const TrainingPlan&, const std::filesystem::path& folder,
                  bool goes_on);

/// The facts of a machine, for `info` and environment.json.
nlohmann::ordered_json machine_json(const placement::Machine&);

/// One object a rank: host, cores, NUMA nodes, hardware threads, threads of each kind.
nlohmann::ordered_json placement_json(const placement::Placement&);

}  // namespace cputrain::training
