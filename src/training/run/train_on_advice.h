#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/request/choose_training.h"
#include "training/session/session.h"

namespace cputrain::training {

/// What to type for a new training with the flags that were given, which begins with `weights`: a
/// run or a checkpoint of it, which cannot be gone on with for these `differences`. "; to begin a
/// new training ...: cputrain --lr 0.1 --weights runs/a --out runs/a-2". Empty where they make
/// another network, which the weights do not fit.
std::string train_on_advice(const Session&, const TrainingSpec&,
                            const std::vector<std::string>& differences,
                            const std::filesystem::path& weights, const std::filesystem::path& run);

}  // namespace cputrain::training
