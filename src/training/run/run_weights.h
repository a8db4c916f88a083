#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

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

}  // namespace cputrain::training
