#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "training/training.h"

/// Weights by the run that made them.
namespace cputrain::training {

/// The file that a person meant by --weights.
struct NamedWeights {
  std::filesystem::path file;
  std::string chosen{};  ///< what a folder's name was taken for, to be printed; empty for a file
  std::filesystem::path run{};  ///< the run that wrote it; empty where the file lies in none
};

/// A file stands for itself, and so does a name that nothing has. The folder of a run stands for
/// its best weights where it keeps them, else for those of its end; where it is not finished, for
/// its newest whole checkpoint, all of which is read before it is chosen, so that all ranks choose
/// the same. A checkpoint's folder stands for its weights. Error(data) for a folder without any.
NamedWeights find_weights(const std::filesystem::path& named);

/// Whether there is such a file, or a folder that holds weights. What cannot be looked at counts as
/// there: its error shows when it is read.
bool weights_are_there(const std::filesystem::path& named);

/// What a run's config.json has about its data, beside what its weight files have.
struct RunData {
  std::string spec;  ///< as --data takes it
  std::optional<std::size_t> limit_validation{};
  bool balanced = false, allow_empty_classes = false;
};

/// Nothing where the file is missing or damaged.
std::optional<RunData> data_of_run(const std::filesystem::path& run);

/// The weights that a run began with, by its config.json; empty where it does not say.
std::string recorded_weights(const std::filesystem::path& run);

// best.safetensors: the weights of the epoch with the lowest loss of validation, or the highest
// accuracy, whatever MIN_DELTA early stopping waits for.

/// At a resume, or when a training goes back: best.safetensors of the run's folder becomes what it
/// was at the checkpoint. Where --save-best or --early-stopping begin only now, or the file could
/// not be written then, or --monitor is another one, the best is sought anew from `progress` on,
/// and a line is printed. Returns whether the file is there. Collective; Error(output) on rank 0.
bool take_up_best(const Training&, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress);

/// Prints that a finished run has none, although they are asked for now.
void say_missing_best(const Session&, const std::filesystem::path& run, const SafetyFlags&);

}  // namespace cputrain::training
