#pragma once

#include <string>

#include "data/dataset.h"
#include "training/request/choose_training.h"

/// What looks at the loss or the accuracy of validation after each epoch.
namespace cputrain::training {

/// Error(usage) where a flag asks for something that watches the validation, and the data keeps no
/// image for it: the training would go on to its last epoch as if it had not been asked for. (If no
/// validation image can be read, decoding fails.)
void check_watchers(const TrainingSpec&, const data::DataSource&);
/// The same as far as flags alone decide, before any data is opened.
void check_watchers(const TrainingFlags&);

/// A warning where it is the model's recipe that asks, which was not made for this data; else
/// empty.
std::string recipe_watcher_warning(const TrainingSpec&, const data::DataSource&);

}  // namespace cputrain::training
