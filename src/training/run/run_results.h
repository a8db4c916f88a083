#pragma once

#include <atomic>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/watch/storage.h"
#include "logging/reporters.h"
#include "system/write_queue.h"
#include "training/training.h"

namespace cputrain::training {

/// What a training leaves in its folder, and its lines about that. The training is borrowed; it has
/// started.
class RunResults {
 public:
  /// `identity`: training_identity() of the training, which the summary repeats.
  RunResults(Training&, std::filesystem::path folder, const nlohmann::ordered_json& identity);

  /// A line about weights that lie in the folder, of a run before this one.
  void say_earlier() const;
  /// The answer to SIGTERM, from another thread: saves the weights of the last completed step at
  /// once, since a step may last longer than its sender waits; says what comes `then`. Rank 0 only;
  /// others do nothing.
  void save_now(const char* then = "the training ends after its step");
  /// Steps are made from here on: what came before is start-up, unless this was called before.
  void begin_training(const loop::Progress& from);
  struct Kept {
    bool best = false;              ///< best.safetensors has the weights of the best epoch
    double checkpoint_seconds = 0;  ///< that checkpoints kept the training
  };
  /// Saves, reports the summary, and prints it; all logs are written then. On rank 0. Collective.
  void finish(const loop::TrainResult&, const Kept&, logging::RunReporter&,
              system::WriteQueue& logs);
  /// What it writes, for the watch over storage.
  std::vector<watch::Writing> writings() const {
    return {{"the weights", &saving_now_}, {"results", &finishing_}};
  }
  /// What happened to this run, and of which one the weights in the folder are, if not of this one.
  std::string with_earlier(const std::string& what) const;

 private:
  std::filesystem::path weights_path() const;
  /// The averages of weights that were saved so, with a line about them.
  void save_averages_now();
  runfiles::ProgramSeconds program_seconds(const loop::TrainResult&) const;

  Training& training_;
  std::filesystem::path folder_;
  std::string identity_;           ///< as text
  std::atomic<bool> has_earlier_;  ///< the weights in the folder are of a run before this one
  std::mutex saving_;              ///< held while weights are written
  std::mutex averaging_;           ///< while their averages are, or change places with them
  system::WorkMeter saving_now_, finishing_;
  bool saved_ = false;                ///< those of the end
  std::optional<double> start_up_{};  ///< seconds of the process until its first step
  double seconds_before_ = 0, training_before_ = 0;  ///< for steps that earlier processes made
};

}  // namespace cputrain::training
