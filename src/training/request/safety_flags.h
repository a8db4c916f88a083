#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "checkpoint/schedule.h"
#include "loop/safety/nan_policy.h"
#include "optim/monitor.h"

namespace cputrain::training {

/// The training ends where the loss of validation has not fallen, or its accuracy not risen, by
/// more than `min_delta` in so many epochs.
struct EarlyStopping {
  int patience = 0;
  double min_delta = 0;
};

/// What happens where a checkpoint cannot be written: a warning, or exit code 74.
enum class CheckpointFailure { warn, stop };
constexpr auto names(CheckpointFailure) {
  return std::to_array<Name<CheckpointFailure>>(
      {{CheckpointFailure::warn, "continue"}, {CheckpointFailure::stop, "stop"}});
}

/// What happens where a rank dies. `stop`: the launcher decides. `shrink`: all end at once, and
/// scripts/supervise goes on without the dead.
enum class RankFailure { stop, shrink };
constexpr auto names(RankFailure) {
  return std::to_array<Name<RankFailure>>(
      {{RankFailure::stop, "stop"}, {RankFailure::shrink, "shrink"}});
}

/// What a person asked about work that must not be lost.
struct SafetyFlags {
  std::string resume;  ///< "auto", the folder of a checkpoint, or nothing
  checkpoint::Marks checkpoint_every{.steps = {}, .seconds = 600, .epochs = 1};
  int keep = 2;  ///< checkpoints
  bool save_best = false;
  CheckpointFailure on_checkpoint_failure = CheckpointFailure::warn;
  RankFailure on_failure = RankFailure::stop;
  loop::NanPolicy on_nan = loop::NanPolicy::abort;
  std::uint64_t check_replicas = 0;  ///< every so many steps; 0: at the end alone
  std::optional<EarlyStopping> early_stopping{};
  optim::Monitor monitor = optim::Monitor::loss;  ///< what it, the best weights, a plateau follow

  /// Also where a training is stopped.
  bool takes_checkpoints() const { return !checkpoint_every.none(); }
  /// Whether best.safetensors is kept.
  bool keeps_best() const { return save_best || early_stopping.has_value(); }
  checkpoint::SnapshotScope kept() const {
    if (takes_checkpoints()) return checkpoint::SnapshotScope::all;
    return keeps_best() ? checkpoint::SnapshotScope::weights : checkpoint::SnapshotScope::nothing;
  }
};

}  // namespace cputrain::training
