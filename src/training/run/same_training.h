#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "loop/progress.h"
#include "optim/learning_rate.h"
#include "training/run/training_identity.h"

/// Whether a checkpoint, or a run that came to its end, is of the training that is asked for. Of
/// rank 0.
namespace cputrain::training {

/// What a training is compared with: a checkpoint that it would go on from, or a run that is at its
/// end, which has all that it will ever have.
enum class Compared { checkpoint, finished_run };

/// A name in which two trainings differ, and what it is in either.
struct Difference {
  std::string name, then, here;
};
/// "batch: 48 in the checkpoint, 64 here".
std::string to_text(const Difference&, Compared);

/// One for each name in which two identities differ and neither is null, but for what Compared may
/// differ in. The end is not looked at.
std::vector<Difference> identity_differences(const nlohmann::ordered_json& then,
                                             const nlohmann::ordered_json& here, Compared);

/// What ends a training, and whether it keeps its best weights.
struct Ending {
  loop::TrainingEnd end;
  bool saves_best = false;

  /// Early stopping kept them before that was usual.
  bool keeps_best() const { return saves_best || end.patience; }
};
/// Error(data) where the identity has none.
Ending ending_of(const nlohmann::ordered_json& identity);

/// Whether more steps or epochs are made than are asked for.
bool asks_for_less(const loop::TrainingEnd& end, const loop::Progress&);

/// A run that came to its end, at `progress`, beside what is asked for now.
struct Ends {
  Ending then, now;
  loop::Progress progress;
  optim::Schedule schedule;
  bool wants_best = false;  ///< --save-best is given now
};
/// One for each flag by which the run would have ended elsewhere, with another rate, or without the
/// best weights that are wanted. None where the end that is asked for now leads to the same place:
/// more epochs where early stopping ended it, a higher target that was reached.
std::vector<Difference> end_differences(const Ends&);

/// Error(usage) after a table where the checkpoint is of another training than the one to be made,
/// `identity`, or where more is made than is asked for. Takes over into `identity` what a training
/// that goes on need not repeat: the weights that it began with. On rank 0.
void check_same_training(const Session&, const std::filesystem::path& checkpoint,
                         const TrainingSpec&, nlohmann::ordered_json& identity);

/// The same for a run that came to its end, of which nothing would be trained: Error(usage) after a
/// table where it is of another training. Else prints what ended it. On rank 0.
void check_finished(const Session&, const std::filesystem::path& folder,
                    const std::filesystem::path& checkpoint, const TrainingSpec&,
                    const nlohmann::ordered_json& identity);

/// Whether a run that ended by itself is at the end, too, that is asked for now. `checkpoint` is
/// its last one, or empty where it has left none.
bool is_at_its_end(const std::filesystem::path& folder, const std::filesystem::path& checkpoint,
                   const TrainingSpec&);

}  // namespace cputrain::training
