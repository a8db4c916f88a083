#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "loop/progress.h"
#include "training/request/choose_training.h"

/// What ends a training: a resume may ask for another end, and goes on where that is a later one.
namespace cputrain::training {

/// --epochs, --steps, --settled-steps, --target-accuracy, --early-stopping, and what that follows.
loop::TrainingEnd end_of(const TrainingSpec&);

inline constexpr const char* kMonitor = "monitor";
/// By the flags' names; what is not asked for is left out.
nlohmann::ordered_json to_json(const loop::TrainingEnd& end);
/// The same read again; Error(data) for what to_json() does not write.
loop::TrainingEnd end_of_json(const nlohmann::ordered_json&);

/// Whether more steps or epochs are made than are asked for.
bool asks_for_less(const loop::TrainingEnd& end, const loop::Progress&);

/// "epochs: 20 in the run, 10 here", one for each flag by which a training that came to its end
/// would have ended elsewhere, or with another rate. None where the end that is asked for now leads
/// to the same place: more epochs where early stopping ended it, a higher target that was reached.
std::vector<std::string> end_differences(const loop::TrainingEnd& then,
                                         const loop::TrainingEnd& now, const loop::Progress&,
                                         const optim::Schedule&);

// What looks at the loss or the accuracy of validation after each epoch.

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
