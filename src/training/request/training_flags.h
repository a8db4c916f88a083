#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/schedule.h"
#include "comm/allreduce_choice.h"
#include "comm/watch/findings.h"
#include "core/precision.h"
#include "data/pipeline.h"
#include "exchange/compression/compression.h"
#include "loop/parts.h"
#include "loop/timeline.h"
#include "model/layer.h"
#include "optim/learning_rate.h"
#include "training/request/class_weights.h"

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
  /// Whether best.safetensors is kept; nothing: where there are images of validation.
  std::optional<bool> save_best{};
  CheckpointFailure on_checkpoint_failure = CheckpointFailure::warn;
  RankFailure on_failure = RankFailure::stop;
  loop::NanPolicy on_nan = loop::NanPolicy::abort;
  std::uint64_t check_replicas = 0;  ///< every so many steps; 0: at the end alone
  std::optional<EarlyStopping> early_stopping{};
  optim::Monitor monitor = optim::Monitor::loss;  ///< what it, the best weights, a plateau follow

  /// Also where a training is stopped.
  bool takes_checkpoints() const { return !checkpoint_every.none(); }
  bool keeps_best() const { return save_best.value_or(true); }
};

/// What the program was asked to do, as far as it matters below the command line. Without more
/// words it is a training.
struct Task {
  bool trains = true;
  bool evaluates = false;  ///< saved weights, on images of their size
  bool measures = false;   ///< times, which mean something on a real device alone
  bool computes = true;    ///< else a backend whose device is missing does no harm
  /// A person reads advice on flags and recipe, unless another program starts the training for its
  /// times.
  bool advised = true;
  /// All ranks are one job: many that do it alone would be silently wrong.
  bool one_job = true;
  std::string name = "train";        ///< for messages: "bench step". Ranks compare it
  std::vector<std::string> typed{};  ///< words that ask for it; a training needs none
};

inline constexpr double kValidationSplit = 0.1;

/// A file, empty for none, and the steps that it shows.
struct Timeline {
  std::string file;
  loop::StepRange steps{1, 20};
};

/// When images are decoded: while the first epoch trains, or before it.
enum class Decoding { meanwhile, first };
constexpr auto names(Decoding) {
  return std::to_array<Name<Decoding>>(
      {{Decoding::meanwhile, "meanwhile"}, {Decoding::first, "first"}});
}

/// Where decoded images lie. `automatic`: in memory, else on disk, else nowhere.
enum class ImageCache { automatic, memory, disk, none };
constexpr auto names(ImageCache) {
  return std::to_array<Name<ImageCache>>({{ImageCache::automatic, "auto"},
                                          {ImageCache::memory, "memory"},
                                          {ImageCache::disk, "disk"},
                                          {ImageCache::none, "none"}});
}

/// Whether the training images stay on the backend's device as a whole.
enum class DataOnDevice { automatic, on, off };
constexpr auto names(DataOnDevice) {
  return std::to_array<Name<DataOnDevice>>(
      {{DataOnDevice::automatic, "auto"}, {DataOnDevice::on, "on"}, {DataOnDevice::off, "off"}});
}

/// What a person asked of a training, one member a flag. Nothing here means "not said": the model's
/// recipe, the weight file or the machine decides then.
struct TrainingFlags {
  std::string program = "cputrain";  ///< as it was called, for lines to be typed
  Task task;

  // model
  std::string model = "dogcat";
  std::optional<int> image_size, classes;
  std::optional<double> dropout;
  std::optional<model::Input> normalize;
  std::string weights;
  std::string first_weights;  ///< those that a training which goes on began with
  bool partial = false;
  std::vector<std::string> freeze;  ///< patterns of layer names (model/layer_patterns.h)
  std::optional<double> backbone_lr;

  // data
  std::string data;
  std::optional<double> validation_split;
  std::optional<std::size_t> limit_train, limit_val;
  std::optional<data::Resize> resize;
  std::optional<data::Fit> fit;
  std::optional<data::Exif> exif;
  std::optional<data::Augment> augment;
  bool balanced = false;
  bool allow_empty_classes = false;
  data::Expand expand = data::Expand::none;

  // training
  std::optional<std::size_t> batch, batch_per_rank, base_batch;
  std::optional<int> micro_batch, epochs;
  std::optional<std::uint64_t> steps, settled_steps, seed;
  std::optional<double> target_accuracy;
  int eval_every = 1;  ///< epochs
  data::Sharding sharding = data::Sharding::slices;
  std::optional<bool> shuffle, drop_last;
  int accumulate = 1;
  std::vector<data::BatchGrowth> batch_growth;

  // update rule and learning rate
  optim::RuleChoice optimizer;
  std::optional<double> lr, weight_decay, clip_norm, clip_value;
  bool momentum_correction = false;
  optim::RateScale lr_scale = optim::RateScale::none;
  double warmup_epochs = 0;
  std::optional<optim::Schedule> schedule;
  double label_smoothing = 0;
  ClassWeights class_weights;
  double ema = 0;  ///< the decay of averages of weights; 0: there are none
  bool sync_bn = false;

  // machine
  std::string backend;  ///< empty: the first that the build has
  Precision precision = Precision::f32;
  std::optional<int> threads, io_threads;
  int prefetch = 1;  ///< micro-batches that are made ahead
  Decoding decode = Decoding::meanwhile;
  ImageCache cache = ImageCache::automatic;
  DataOnDevice data_on_device = DataOnDevice::automatic;
  std::optional<bool> bind;
  std::map<std::string, std::set<std::string>> options;  ///< by backend: BackendRequest::options
  double bucket_mb = 25;
  std::optional<bool> shard_dense;
  comm::AllreduceChoice allreduce;
  bool reproducible = false;
  exchange::Compression compress;

  // output
  std::string out;
  bool overwrite = false;
  std::optional<int> verbose;
  std::size_t log_every = 10;
  bool profile = false;
  Timeline timeline;
  std::vector<std::string> log_formats;  ///< words of logging/reporters.h
  bool measure_limits = false;
  SafetyFlags safety;
  watch::Limits stalls;

  /// The flags as they were given, wherever that was: {"batch", "32"}. config.json repeats them,
  /// and ranks compare them; a program that sets members whose flags its ranks or its config.json
  /// should know names those here, too.
  std::vector<std::pair<std::string, std::string>> given;
  std::set<std::string> switches;  ///< those among them that have no value

  bool was_given(const std::string& flag) const {
    return std::ranges::any_of(given, [&](const auto& each) { return each.first == flag; });
  }
  std::set<std::string> options_of(const std::string& name) const {
    const auto found = options.find(name);
    return found == options.end() ? std::set<std::string>{} : found->second;
  }
  double validation_share() const { return validation_split.value_or(kValidationSplit); }
  data::Exif exif_choice() const { return exif.value_or(data::Exif::apply); }
  std::string data_or_synthetic() const { return data.empty() ? "synthetic" : data; }

  data::DataRequest data_request(std::uint64_t split_seed) const {
    return {.spec = data_or_synthetic(),
            .validation_split = validation_share(),
            .seed = split_seed,
            .limit_train = limit_train,
            .limit_validation = limit_val,
            .balanced = balanced,
            .expand = expand,
            .allow_empty_classes = allow_empty_classes,
            .exif = exif_choice()};
  }
};

}  // namespace cputrain::training
