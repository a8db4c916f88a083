#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/schedule.h"
#include "checkpoint/writer_thread.h"
#include "comm/watch/storage.h"
#include "system/clock.h"
#include "system/signals.h"
#include "system/usage/write_queue.h"
#include "training/run/run_folder.h"
#include "training/training.h"

namespace cputrain::training {

/// What a training asks between its steps: whether it is to stop, and its checkpoints, which rank 0
/// writes on a thread of its own. Borrows the training, which has started.
class RunControl final : public loop::Control {
 public:
  /// `identity`: training_identity() of the training. `start`: where this process takes the
  /// training up. `has_best`: best.safetensors has the weights of start.best. `logs`: the queue of
  /// logs, which a checkpoint waits for.
  RunControl(Training&, const RunFolder&, nlohmann::ordered_json identity,
             const loop::Progress& start, bool has_best, system::WriteQueue& logs);

  bool stop_requested() override;
  bool checkpoint_due(const loop::Progress&) override;
  bool can_take(const loop::Progress&) override;
  void take_checkpoint(const loop::Progress&) override;
  void stopping(const loop::Progress&) override;
  void finished(const loop::Progress&) override;
  void best_weights(const loop::Progress&) override;

  /// A checkpoint of the place where the training begins here, on disk when it returns. Collective.
  void begin_with_checkpoint(const loop::Progress&);
  /// The training is over and its weights are good: waits until all is on disk, and leaves one
  /// checkpoint of a training that ended by itself.
  void finish();
  /// Whether best.safetensors has the weights of that epoch: a full disk may have kept them from
  /// it. Collective.
  bool has_best(const loop::BestEpoch&);
  /// Where a training whose gradients are not finite can go back to: the newest whole checkpoint,
  /// on rank 0. Collective; Error(output) on rank 0 where there is none.
  std::filesystem::path newest_to_go_back_to();
  /// Why the last checkpoint, or the best weights, could not be written; nothing where they were,
  /// or none were to be. Of rank 0.
  const std::optional<std::string>& failure() const { return failure_; }
  /// "Checkpoints: 12 written, 0.3 % of the time", for the log; empty of none. Of rank 0.
  std::string line() const;
  /// That checkpoints kept the training.
  double seconds() const { return blocked_; }

  /// The job ends: waits for what is being written, for so many seconds at most, and for the logs;
  /// the newest whole checkpoint in words. Another rank than 0 looks into the folder. From any
  /// thread.
  std::string await_newest(double seconds, const std::filesystem::path& folder);
  /// What it writes, for the watch over storage.
  std::vector<watch::Writing> writings() const;
  /// The newest checkpoint that it has written, or begun from; empty of none. From any thread.
  std::string newest() const;

 private:
  void at_checkpoint(const loop::Progress&);
  void settle();
  void settle_or_stop();
  bool comes_free();
  void compare_replicas(const loop::Progress&);
  void keep(const loop::Progress&);
  void write(const loop::Progress&, nlohmann::ordered_json facts,
             std::future<nlohmann::ordered_json> marks);
  std::future<nlohmann::ordered_json> mark_logs();
  void add_best(const std::filesystem::path& folder, int epoch);
  void write_best(int epoch, const compute::OwnedArray* weights);
  void write_aside();

  Training& training_;
  const SafetyFlags& safety_;
  std::filesystem::path folder_;  ///< empty on ranks other than 0
  nlohmann::ordered_json identity_;
  system::WriteQueue& logs_;
  checkpoint::Schedule schedule_;
  system::Stopwatch watch_;
  std::optional<std::uint64_t> kept_step_;
  system::Stopwatch since_kept_;
  std::optional<std::string> failure_;
  bool ended_ = false;  ///< by itself
  bool waits_ = false;  ///< what is due waits for what is being written
  bool told_wait_ = false;
  // Best weights that wait while storage does: the newest ones.
  std::mutex aside_mutex_;
  std::shared_ptr<compute::OwnedArray> aside_{};  ///< null: none
  int aside_epoch_ = 0;
  std::atomic<std::uint64_t> newest_step_;  ///< 0: none
  // For the writer's thread, between two calls of its wait():
  int written_ = 0;
  std::filesystem::path best_checkpoint_;  ///< the last one with best weights
  int best_epoch_ = 0;                     ///< which are of this epoch
  int best_on_disk_;                       ///< the epoch that best.safetensors is of
  std::string best_failure_;
  double blocked_ = 0;  ///< seconds that checkpoints kept the training
  std::unique_ptr<checkpoint::WriterThread> writer_;  // last: its thread uses the others
};

// best.safetensors: the weights of the epoch with the lowest loss of validation, or the highest
// accuracy, whatever MIN_DELTA early stopping waits for.

/// At a resume, or when a training goes back: best.safetensors of the run's folder becomes what it
/// was at the checkpoint. Where the best weights are kept only from now on, or the file could
/// not be written then, or --monitor is another one, the best is sought anew from `progress` on,
/// and a line is printed. Returns whether the file is there. Collective; Error(output) on rank 0.
bool take_up_best(const Training&, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress);

/// Prints that a finished run has none, although they are asked for now.
void say_missing_best(const Session&, const std::filesystem::path& run, const SafetyFlags&);

}  // namespace cputrain::training
