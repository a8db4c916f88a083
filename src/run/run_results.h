#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "job/training_job.h"

namespace cputrain::run {

/// What a training leaves in its folder, and the lines that say so. The job is borrowed; it has
/// started.
class RunResults {
 public:
  RunResults(job::TrainingJob&, std::filesystem::path folder);

  /// A line about weights that lie in the folder, of a run before this one.
  void say_earlier() const;
  /// The answer to SIGTERM, from another thread: saves the last completed step; the exit code.
  int save_and_say();
  /// Saves, and reports the summary. Rank 0 only; others do nothing.
  void finish(const train::TrainResult&, logging::Reporter&);
  /// What happened to this run, and of which one the weights in the folder are, if not of this one.
  std::string with_earlier(const std::string& what) const;

 private:
  std::filesystem::path weights_path() const;

  job::TrainingJob& job_;
  std::filesystem::path folder_;
  std::atomic<bool> has_earlier_;  ///< the weights in the folder are of a run before this one
};

}  // namespace cputrain::run
