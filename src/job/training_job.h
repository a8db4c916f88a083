#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "job/batch_plans.h"
#include "job/training.h"
#include "train/trainer.h"
#include "train/weights.h"

namespace cputrain::job {

/// One training from its plan to its weights on disk. Its steps are made once, in this order, by
/// all ranks together: compile(), load(), start(), run(), save().
class TrainingJob {
 public:
  /// The session is borrowed.
  TrainingJob(const Session&, TrainingPlan, std::shared_ptr<const data::DataSource>);
  TrainingJob(const TrainingJob&) = delete;  // its parts refer to each other
  TrainingJob& operator=(const TrainingJob&) = delete;

  /// The program, before any image is decoded, so that what cannot fit is refused at once.
  /// Error(usage).
  void compile();

  /// Decodes the images. Compiles where compile() was not called, or once more where damaged images
  /// are left out and shares have changed. Error(data), Error(usage).
  void load();
  /// The same with images that are decoded already.
  void load(std::shared_ptr<const data::DecodedData>);

  /// First weights: those of --weights, put by the names of the data's classes, else initial ones.
  /// Error(data).
  void start();

  /// Trains and validates. `stop_requested` is asked once a step. Error(failed) where the loss or,
  /// in the end, a weight is no number; the reporter has heard of all before.
  train::TrainResult run(logging::Reporter&, logging::Timeline&,
                         const std::function<bool()>& stop_requested);

  /// Writes weights.safetensors. Of one rank. Error(output).
  void save(const std::filesystem::path&) const;
  /// The same from another thread while run() goes on, of the last completed step. No step is
  /// completed on this rank after it, so that none is told that the file does not have; the process
  /// is to end. Error(output) also where other ranks of the node stopped in the middle of a step.
  void save_at_once(const std::filesystem::path&) const;

  /// Proves that all ranks have the same weights: replicas that drifted apart (other processors, a
  /// damaged memory) must not pass for one model. Error(disagree). Collective.
  void check_replicas() const;

  const Session& session() const { return session_; }
  const TrainingPlan& plan() const { return plan_; }
  const data::DataSource& source() const { return *source_; }
  const BatchPlans& batches() const { return *batches_; }         ///< once compiled
  const CompiledTraining& compiled() const { return compiled_; }  ///< once compiled
  Training& training() { return *training_; }                     ///< once started
  Array weights() const { return compiled_.exchange->arenas().weights; }

 private:
  void compile_for(MemoryBefore);
  train::TrainOptions options() const;

  const Session& session_;
  TrainingPlan plan_;
  std::shared_ptr<const data::DataSource> source_;
  std::shared_ptr<const data::DecodedData> data_;
  std::optional<BatchPlans> batches_;
  CompiledTraining compiled_;
  std::unique_ptr<Training> training_;
  std::optional<train::ModelDescription> description_;  ///< of the weights, once started
};

/// Opens the data, decides the plan, and makes sure that all ranks are about to do the same.
/// Error(usage), Error(data), Error(disagree). Collective.
TrainingJob open_training(const Session&, const TrainingSpec&);

}  // namespace cputrain::job
