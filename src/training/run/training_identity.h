#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "loop/progress.h"
#include "optim/schedule.h"
#include "training/training.h"

namespace cputrain::training {

/// Where training_identity() keeps what ends the training (training/asked_end.h).
inline constexpr const char* kEnd = "end";
inline constexpr const char* kSaveBest = "save-best";  ///< within kEnd
/// And the weights that it begins with, which a resume need not name again, nor have: where they
/// are named and not there, it says so, and a run that began with some is no other one for that.
inline constexpr const char* kFirstWeights = "weights";

/// Which images are left out, since they are damaged; kNone for none.
inline constexpr const char *kDamaged = "damaged images", *kNone = "none";

/// The name in the value of kFirstWeights, which has a hash, too.
std::string name_of_weights(const std::string& value);

/// What a training is, by names that a person knows. All but the end, the backend and the precision
/// is what a resume may not change, since the rest of the training would be another one's. Threads,
/// ranks and what is logged are not in it. What only decoding shows is null before add_decoded().
/// The same on all ranks, but for the weights that the training starts with, which rank 0 reads.
/// Error(data) where they cannot be read.
nlohmann::ordered_json training_identity(const Training&);
/// Adds what decoding shows: which images are damaged. Once loaded.
void add_decoded(nlohmann::ordered_json& identity, const Training&);

/// What a training is compared with: a checkpoint that it would go on from, or a run that is at its
/// end, which has all that it will ever have.
enum class Compared { checkpoint, finished_run };

/// A name in which two trainings differ, and what it is in either.
struct Difference {
  std::string name, then, here;
};
/// "batch: 48 in the checkpoint, 64 here".
std::string to_text(const Difference&, Compared);
/// Whether weights of the one do not fit the other.
bool makes_another_network(const Difference&);

/// One for each name in which two identities differ and neither is null, but for what Compared may
/// differ in. The end is not looked at.
std::vector<Difference> identity_differences(const nlohmann::ordered_json& then,
                                             const nlohmann::ordered_json& here, Compared);

/// What ends a training, and whether it keeps its best weights.
struct Ending {
  loop::TrainingEnd end;
  bool saves_best = false;  ///< --save-best

  bool keeps_best() const { return saves_best || end.patience; }
};
/// Error(data) where the identity has none.
Ending ending_of(const nlohmann::ordered_json& identity);

/// A run that came to its end, at `progress`, beside what is asked for now.
struct Ends {
  Ending then, now;
  loop::Progress progress;
  optim::Schedule schedule;
};
/// One for each flag by which the run would have ended elsewhere, with another rate, or without the
/// best weights that are wanted. None where the end that is asked for now leads to the same place:
/// more epochs where early stopping ended it, a higher target that was reached.
std::vector<Difference> end_differences(const Ends&);

/// "--backend cuda --precision bf16", which a resume may change; empty where it is not known.
std::string program_text(const nlohmann::ordered_json& identity);

}  // namespace cputrain::training
