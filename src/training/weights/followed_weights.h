#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "training/request/training_flags.h"

/// Without --model a training has the model of the weights that it begins with, where their file
/// says it.
namespace cputrain::training {

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
