#pragma once

#include <optional>
#include <string>

#include "loop/progress.h"
#include "loop/reporter.h"

namespace cputrain::logging {

/// A training goes on from a checkpoint.
struct ResumeRecord {
  loop::Progress progress{};  ///< the checkpoint's, and which steps it goes without now
  int ranks = 1;              ///< now
  std::string checkpoint{};   ///< the name of its folder
  /// Since that checkpoint, where the training did not end by itself: all of it was in vain.
  std::optional<double> lost_seconds{};
};

/// Where the time of this process went, from its start until its results were on disk.
struct ProgramSeconds {
  double all = 0;
  double start_up = 0;  ///< until the first step
  double training = 0;
  double evaluation = 0;

  /// Checkpoints, weights, what a rollback makes again.
  double other() const { return all - start_up - training - evaluation; }
};

struct SummaryRecord {
  loop::TrainResult result{};
  std::optional<double> target_accuracy{};
  std::optional<double> best_accuracy{};  ///< of validation, in the best epoch
  std::optional<loop::PeakMemory> memory{};
  ProgramSeconds program{};
  std::string weights_hash{};
  std::string weights_file{};
  double checkpoint_seconds = 0;  ///< that steps waited for checkpoints, in this process
  std::string training{};         ///< what it was, as the text of a JSON object; empty: not known
};

/// Hears of a whole run: of the loop, and how it began and ended.
class RunReporter : public loop::Reporter {
 public:
  /// Comes first, where a training goes on.
  virtual void resumed(const ResumeRecord&) {}
  virtual void summary(const SummaryRecord&) {}
};

}  // namespace cputrain::logging
