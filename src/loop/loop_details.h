#pragma once

#include <optional>

#include "loop/loop.h"
#include "loop/records.h"
#include "loop/step.h"
#include "system/clock.h"
#include "system/lost_time.h"

namespace cputrain::loop {

/// Measures what an epoch loses on this rank: to other ranks, to others on its host, and to a
/// process that was stopped.
class EpochMeter {
 public:
  /// The options are borrowed. `simulated`: see RankProgram.
  explicit EpochMeter(const LoopOptions&, bool simulated = false);

  void begin_step() { stopped_before_ = stopped(); }
  /// `waited`: seconds of the step in which this rank waited for others.
  void end_step(double waited);
  /// The epoch is over: what it lost, and its seconds and budgets as means over ranks, so that one
  /// line speaks for all of them. Collective.
  void finish(EpochRecord&, comm::Communicator&);

 private:
  double stopped() const { return options_.stopped_seconds ? options_.stopped_seconds() : 0; }

  const LoopOptions& options_;
  system::PartSinceLast stolen_, cpu_wait_;  ///< empty where it is simulated
  double stopped_before_ = 0;                ///< seconds until the step that is made
  double waited_ = 0;  ///< seconds of its steps in which this rank was there and waited
};

/// The loop of a training. run(), in loop.cpp, is all of it, and moves what Progress counts. The
/// others measure, log, check and ask.
class Loop {
 public:
  /// Borrows all but `start`.
  Loop(Parts&, const std::optional<Validation>&, const LoopOptions&, const Progress& start,
       Reporter&, Control&);
  TrainResult run();

 private:
  EpochSums& begun() { return *progress_.begun; }

  // Epochs.
  bool is_over() const;
  void begin_epoch();
  bool has_steps() const;
  /// Images that no step has asked for; a damaged one stops the training.
  void read_rest();
  /// Statistics become those of all ranks, and so do the figures, which are of the whole epoch,
  /// wherever it went on.
  EpochRecord end_steps();
  /// False where it was not finished: some rank was asked to stop, or its images were lost.
  bool validate(EpochRecord&);
  bool is_validated(int epoch) const;
  std::optional<compute::Tally> evaluate_weights();
  void end_epoch(const EpochRecord&);
  void keep_best(const EpochRecord&);
  double next_rate() const;
  TrainResult result();

  // Steps.
  StepToDo next_step();
  bool count(const StepResult&);
  bool needs_sums(const StepResult&) const;
  void measure(const StepResult&, bool settled);
  void log_late(const compute::Tally& sums);
  void check_skipped() const;
  bool compares_replicas() const;

  // Control, and what it is given.
  /// The progress with its times.
  const Progress& timed();
  /// The same with all that the parts know.
  const Progress& whole();
  bool any_rank(bool mine) const;
  bool stop_requested() { return any_rank(control_.stop_requested()); }
  bool checkpoint_due(bool owed);
  void finished();

  Parts& parts_;
  const std::optional<Validation>& validation_;
  const LoopOptions& options_;
  Progress progress_;
  Reporter& reporter_;
  Control& control_;
  Observer observer_;
  TrainResult result_;

  std::optional<data::BatchPlan> plan_;  ///< the epoch's, as is the next one
  std::optional<EpochMeter> meter_;
  std::optional<StepRecord> late_;     ///< the step whose line waits for its sums
  StepTally late_tally_;               ///< which are to be added up of these; empty without it
  bool left_out_ = false;              ///< the step that is made
  std::uint64_t features_before_ = 0;  ///< of the program, when that step began
  bool cold_ = true;          ///< nothing has been computed since the training began or went on
  int skipped_in_a_row_ = 0;  ///< for their gradients
  bool told_end_ = false;

  system::Stopwatch watch_;
  double seconds_before_;     ///< the training's, when the watch began
  double epoch_began_ = 0;    ///< by the watch, as if the whole epoch had been made here
  bool makes_steps_ = false;  ///< what follows them is not of the epoch's seconds
};

}  // namespace cputrain::loop
