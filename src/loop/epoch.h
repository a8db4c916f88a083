#pragma once

#include "loop/trainer.h"
#include "system/clock.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"

namespace cputrain::loop {

/// What goes on from epoch to epoch of a training. What it refers to is borrowed.
class Course {
 public:
  /// `progress` becomes that of every step as it is made.
  Course(const TrainingParts&, const TrainOptions&, Progress& progress, logging::Reporter&,
         Control&);

  const TrainingParts& parts;
  const TrainOptions& options;
  Progress& progress;
  logging::Reporter& reporter;
  Control& control;
  bool cold = true;          ///< nothing has been computed since the training began or went on
  int skipped_in_a_row = 0;  ///< for their gradients

  /// The epoch that the progress has begun goes on now, or begins.
  void begin_epoch();
  /// Its steps are made: what follows is not of its seconds.
  void end_steps() { makes_steps_ = false; }
  /// The progress with its times, for who decides by them.
  const Progress& timed();
  /// The same with all that the parts know.
  const Progress& whole();

 private:
  system::Stopwatch watch_;
  double seconds_before_;   ///< of the training, when the watch began
  double epoch_began_ = 0;  ///< by the watch, as if the whole epoch had been made here
  bool makes_steps_ = false;
};

/// Why no more steps of an epoch are made.
enum class EpochEnd {
  whole,        ///< there are no more
  enough,       ///< as many as --steps says were made
  stopped,      ///< on request, maybe after the last one
  rolled_back,  ///< gradients were no numbers; the step was not made
  lost_input    ///< its images were not the data's; the step was not made
};

/// One pass over the data, or less of it: the epoch that the progress has begun, or the next one.
class Epoch {
 public:
  explicit Epoch(Course&);

  /// Makes its steps, with the checkpoints that are due between them. Collective, as close() is.
  EpochEnd run();
  /// Statistics become those of all ranks, and so do the figures, which are of the whole epoch,
  /// wherever it went on.
  logging::EpochRecord close();
  /// It was validated, or need not be: the progress has one more epoch.
  void end(const logging::EpochRecord&);
  /// A checkpoint was due after the last step and waits for the epoch's end.
  bool owes_checkpoint() const { return owes_checkpoint_; }
  /// Why its input was lost.
  const std::string& lost_input() const { return lost_input_; }

 private:
  /// A step of which all is known but its sums.
  struct Untold {
    logging::StepRecord record;
    StepTally tally;
  };

  BegunEpoch& begun() { return *course_.progress.begun; }
  StepResult make_step();
  bool count(const StepResult&);
  void account(StepResult&);
  void tell(const compute::Tally&);
  void check();
  bool compares_replicas() const;
  double seconds_stopped() const;
  void undo_count();

  Course& course_;
  int epoch_;  ///< from 1
  data::BatchPlan plan_;
  bool left_out_ = false;         ///< the step that is made
  std::optional<Untold> untold_;  ///< the last step, until its sums have come
  bool owes_checkpoint_ = false;
  std::string lost_input_;
  system::StolenTime stolen_;
  system::CpuWait wait_;
  double stopped_before_ = 0;  ///< seconds until the step that is made
  double waited_ = 0;          ///< seconds of its steps in which this rank was there and waited
};

}  // namespace cputrain::loop
