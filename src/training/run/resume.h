#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "training/run/run_folder.h"
#include "training/training.h"
#include "training/weights/named_weights.h"

/// --resume: where a training goes on.
namespace cputrain::training {

/// What rank 0 found; others know all but `checkpoint`.
struct Start {
  bool finished = false;   ///< the run has come to its end already: see check_finished()
  bool goes_on = false;    ///< from `checkpoint`; else from the beginning
  bool elsewhere = false;  ///< the checkpoint is another folder's, and this one has none yet
  std::filesystem::path checkpoint{};
  /// How gradients were summed, where as many ranks on as many nodes are there now; else empty.
  /// Another way rounds differently, and what --allreduce auto measures may
  /// differ from one start to the next.
  std::string allreduce{};
  /// How the checkpoint's training reads photographs; nothing where it does not go on from one.
  std::optional<data::Exif> exif{};
  /// The same for how it resizes images.
  std::optional<data::Resize> resize{};
  std::optional<data::Fit> fit{};
  std::string first_weights{};                  ///< that the training began with; empty for none
  std::optional<DescribedModel> first_model{};  ///< theirs
};

/// The newest checkpoint that can be gone on from; empty where there is no checkpoint. Newer ones
/// are passed over with a warning and its reason, and set aside. Error(data) where none of those
/// that are there can be used. Of rank 0.
std::filesystem::path newest_whole(const Session&, const std::filesystem::path& folder);

/// Chooses: for --resume auto the newest whole checkpoint of the run's folder, passing damaged ones
/// with a line and its reason; for --resume DIR that one, Error(data) where it is not whole.
/// Collective.
Start choose_start(const Session&, const TrainingSpec&, const RunFolder&);

/// The spec with what a training that goes on has from its checkpoint, where no flag says it.
TrainingSpec with_choices_of(const Start&, TrainingSpec);

}  // namespace cputrain::training
