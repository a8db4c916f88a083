#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

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

}  // namespace cputrain::training
