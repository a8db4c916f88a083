#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "checkpoint/folder.h"
#include "data/pipeline.h"
#include "runfiles/description.h"
#include "training/request/training_flags.h"

/// What --weights names: a file, or the run that made it; and the model that it is of.
namespace cputrain::training {

using runfiles::kConfigName;
inline constexpr const char* kWeightsName = "weights.safetensors";
inline constexpr const char* kBestName = checkpoint::kBestName;

/// Figures, weights or checkpoints; a run that failed before its first step left none of them.
bool holds_run(const std::filesystem::path& folder);

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

/// What a run's config.json has about its data, beside what its weight files have: `spec`, the
/// limit of validation, `balanced` and `allow_empty_classes`. Nothing where it is missing or
/// damaged.
std::optional<data::DataRequest> data_of_run(const std::filesystem::path& run);

/// The weights that a run began with, by its config.json; empty where it does not say.
std::string recorded_weights(const std::filesystem::path& run);

// Without --model a training has the model of the weights that it begins with, where their file
// says it.

/// What a weight file says of a built-in model.
struct DescribedModel {
  std::string name;
  int image_size;
  std::string normalize;  ///< a word of --normalize; empty where none says it exactly
};

/// Nothing where the file names no network, or one that is not built in. Error(data).
std::optional<DescribedModel> described_model(const std::filesystem::path& weights);

/// The model, and what else no flag says.
void follow(TrainingFlags&, const DescribedModel&);

}  // namespace cputrain::training
