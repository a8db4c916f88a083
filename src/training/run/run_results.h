#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/watch/storage.h"
#include "logging/reporters.h"
#include "runfiles/metrics.h"
#include "system/usage/write_queue.h"
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
  /// Saves, reports the summary, and prints it; all logs are written then. On rank 0. `kept_best`:
  /// best.safetensors has the weights of the best epoch. `checkpoint_seconds`: that checkpoints
  /// kept the training. Collective.
  void finish(const loop::TrainResult&, bool kept_best, double checkpoint_seconds,
              logging::RunReporter&, system::WriteQueue& logs);
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

// What a training prints at its end: what came out, which weights lie where, how long it took.

struct RunEnd {
  const logging::SummaryRecord& summary;
  std::filesystem::path folder;
  bool keeps_best = false;  ///< SafetyFlags::keeps_best()
  bool kept_best = false;   ///< best.safetensors has the weights of the best epoch
  std::string limit{};      ///< input_limit()
  bool averages = false;    ///< averages of weights were saved
  std::string lost{};       ///< runfiles/lost_seconds.h: text_of()
  bool is_alone = false;    ///< one rank trained
  std::string learned_little{};
};

std::vector<std::string> end_lines(const RunEnd&);

/// Where no epoch was better than one answer for all validation images (`labels`); else empty.
std::string learned_little(std::span<const runfiles::EpochLine> epochs,
                           std::span<const std::int32_t> labels);

/// Images that steps wait for: of decoders, where they lie in no file.
struct ImageWait {
  double share = 0;       ///< a part of the last epoch's time
  double got = 0;         ///< images a second that steps took in it, all ranks together
  double decoded = 0;     ///< that all hosts decode with no steps beside it; 0: not known
  bool packed = false;    ///< they are of a packed file
  std::string folder{};   ///< where a file on disk lies that was made of them; empty: there is none
  bool asked = false;     ///< for decoders: --cache none
  std::size_t bytes = 0;  ///< that all images take when they are decoded

  /// What steps would take without a wait.
  double wanted() const { return got / (1 - share); }
};

/// "Limit: images. ..." with a remedy; empty where steps waited for less than 2 % of their time.
std::string input_limit(const ImageWait&);

}  // namespace cputrain::training
