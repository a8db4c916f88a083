#pragma once

#include <nlohmann/json_fwd.hpp>

#include "data/dataset.h"
#include "loop/progress.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

/// What ends a training: a resume may ask for another end, and goes on where that is a later one.
namespace cputrain::training {

/// --epochs, --steps, --settled-steps, --target-accuracy, --early-stopping, and what that follows.
loop::TrainingEnd end_of(const TrainingSpec&);

/// Where the identity of a training (training/run/training_identity.h) keeps it.
inline constexpr const char* kEnd = "end";
inline constexpr const char* kSaveBest = "save-best";  ///< within kEnd
inline constexpr const char* kMonitor = "monitor";
/// By the flags' names; what is not asked for is left out.
nlohmann::ordered_json to_json(const loop::TrainingEnd& end);
/// The same read again; Error(data) for what to_json() does not write.
loop::TrainingEnd end_of_json(const nlohmann::ordered_json&);

/// Whether a training with this identity, which may be damaged, compares its last epochs with the
/// best one: else its best.safetensors is of an earlier start.
bool keeps_best(const nlohmann::ordered_json& identity);

// What looks at the loss or the accuracy of validation after each epoch.

/// Error(usage) where a flag asks for something that watches the validation, and the data keeps no
/// image for it: the training would go on to its last epoch as if it had not been asked for. (If no
/// validation image can be read, decoding fails.)
void check_watchers(const TrainingSpec&, const data::DataSource&);
/// The same, with a warning where the model's recipe asks, which was not made for this data.
void check_watchers(const Session&, const TrainingSpec&, const data::DataSource&);
/// The same as far as flags alone decide, before any data is opened.
void check_watchers(const TrainingFlags&);

}  // namespace cputrain::training
