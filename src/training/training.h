#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/snapshot.h"
#include "loop/loop.h"
#include "training/plan/compiled_training.h"
#include "training/plan/image_place.h"
#include "training/plan/training_plan.h"
#include "weights/description.h"

namespace cputrain::training {

/// One training from its plan to its weights on disk. Its steps are made once, in this order, by
/// all ranks together: compile(), load(), start() or resume(), run(), save().
class Training {
 public:
  /// The session is borrowed.
  Training(const Session&, TrainingPlan, std::shared_ptr<const data::DataSource>);
  Training(const Training&) = delete;  // what it has refers to each other
  Training& operator=(const Training&) = delete;

  /// The program, before any image is decoded, so that what cannot fit is refused at once.
  /// Error(usage).
  void compile();

  /// Decodes the images. Compiles where compile() was not called, or once more where damaged images
  /// are left out and shares have changed. Error(data), Error(usage). `meanwhile`: after compile(),
  /// and only where images are kept in the host's memory.
  void load(Decoding = Decoding::first);
  /// Whether images are still coming, damaged ones among them; the same on all ranks.
  bool is_filling() const { return parts_ && parts_->batches->filling(); }
  /// Those that are missing, where is_filling(): the training is then as after load(), and begins
  /// anew.
  void load_the_rest();
  /// The same with images that are decoded already.
  void load(std::shared_ptr<const data::DecodedData>);

  /// First weights: those of --weights, put by the names of the data's classes, else initial ones.
  /// Error(data).
  void start();
  /// Instead of start(): everything as a checkpoint has it, whose folder rank 0 names. May be
  /// called again, to go back. Error(data), on all ranks.
  loop::Progress resume(const std::filesystem::path& checkpoint);

  /// Trains and validates from `start` on, which resume() returned. Error(failed) where the loss
  /// or, in the end, a weight is NaN or infinite; the reporter has got all before.
  loop::TrainResult run(const loop::Progress& start, loop::Reporter&, loop::Control&);

  /// The same from the beginning, without checkpoints.
  loop::TrainResult run(loop::Reporter&, const std::function<bool()>& stop_requested);

  /// Puts weights that save() wrote, on rank 0, in the place of the present ones. Collective.
  /// Error(data) on rank 0.
  void load_weights(const std::filesystem::path&);

  /// Writes weights.safetensors. Of one rank. Error(output).
  void save(const std::filesystem::path&) const;
  /// The same from another thread while run() goes on, of the last completed step, without waiting
  /// for a disk. Error(output) also where other ranks of the node stopped in the middle of a step.
  void save_at_once(const std::filesystem::path&) const;
  /// The same of the averages of the weights. False where other ranks own some of them, or where
  /// they are being evaluated.
  bool save_averages_at_once(const std::filesystem::path&) const;
  /// The averages of the weights, where they are kept, on rank 0. Collective. Error(output).
  void save_averages(const std::filesystem::path& file);

  /// Proves that all ranks have the same weights: replicas that drifted apart (other processors, a
  /// damaged memory) must not pass for one model. Error(disagree). Collective.
  void check_replicas() const;

  const Session& session() const { return session_; }
  const TrainingPlan& plan() const { return plan_; }
  const data::DataSource& source() const { return *source_; }
  const data::DecodedData* data() const { return data_.get(); }   ///< null until it is loaded
  const BatchPlans& batches() const { return *batches_; }         ///< once compiled
  const CompiledTraining& compiled() const { return compiled_; }  ///< once compiled
  loop::Parts& parts() { return *parts_; }                        ///< once started
  checkpoint::Snapshot& snapshot() { return *snapshot_; }         ///< the same
  /// Which arrays of --weights were taken (start_weights()), once started.
  const std::string& first_weights() const { return first_weights_; }
  const weights::ModelDescription& description() const { return *description_; }  ///< the same
  /// Records nothing unless it is given steps.
  loop::Timeline& timeline() { return timeline_; }
  Array weights() const { return compiled_.exchange->arenas().weights; }

 private:
  void compile_for(MemoryBefore);
  ImageForm form() const { return image_form(plan_.spec); }
  data::BatchRequest training_request(bool on_device) const;
  std::vector<double> weights_of_classes() const;
  data::BatchRequest validation_request() const;
  compute::FeedBytes batch_memory(bool on_device) const;
  void tell_folders(const std::vector<std::string>& folders);
  bool keeps_all() const { return !place_.keep; }
  bool is_decoded_later() const;
  void make_parts();
  void describe(weights::TrainingData);
  loop::LoopOptions options() const;

  const Session& session_;
  TrainingPlan plan_;
  std::shared_ptr<const data::DataSource> source_;
  std::shared_ptr<const data::DecodedData> data_;
  std::optional<BatchPlans> batches_;
  ImagePlace place_;
  CompiledTraining compiled_;
  loop::Timeline timeline_{loop::StepRange{}};
  std::unique_ptr<loop::Parts> parts_;
  std::optional<checkpoint::Snapshot> snapshot_;
  std::string first_weights_;
  std::optional<weights::ModelDescription> description_;  ///< the weights', once started
};

/// Opens the data, decides the plan, and makes sure that all ranks are about to do the same.
/// Error(usage), Error(data), Error(disagree). Collective.
Training open_training(const Session&, TrainingSpec);

}  // namespace cputrain::training
