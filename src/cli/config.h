#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/compression/compression.h"
#include "data/pipeline.h"
#include "report/prices.h"
#include "report/timeline.h"
#include "sweep/plan.h"
#include "train/learning_rate.h"

namespace cputrain {

inline constexpr double kValidationSplit = 0.1;

/// What a person asked for, one member a flag. Nothing here means "not said": the model's recipe,
/// the weight file or the machine decides then.
/// Of `simulate`: the grid, and where and with what costs it is.
struct SimulationRequest {
  std::vector<int> cpus, threads;
  std::vector<std::size_t> batches, batches_per_rank;
  std::string platform, costs;
  std::optional<double> clock_ghz, memory_gbs, network_gbps;
  std::optional<int> measure_seconds;
};

struct Config {
  std::string command = "train";
  std::string topic;               ///< second word of `bench` and `data`
  std::vector<std::string> files;  ///< of `predict` and `report`; data and file of `data`

  // model
  std::string model = "dogcat";
  std::optional<int> image_size, classes;
  std::optional<double> dropout;
  std::string weights;
  bool partial = false;
  std::vector<std::string> freeze;  ///< patterns of layer names

  // data
  std::string data;
  std::optional<double> validation_split;
  std::optional<std::size_t> limit_train, limit_val;
  std::optional<Resize> resize;
  std::optional<Augment> augment;
  bool balanced = false;
  bool allow_empty_classes = false;
  Expand expand = Expand::none;

  // training
  std::optional<std::size_t> batch, batch_per_rank, base_batch;
  std::optional<int> micro_batch, epochs;
  std::optional<std::uint64_t> steps, settled_steps, seed;
  std::optional<double> target_accuracy;
  Sharding sharding = Sharding::slices;
  std::optional<bool> shuffle, drop_last;
  int accumulate = 1;
  std::vector<BatchGrowth> batch_growth;

  // update rule and learning rate
  std::string optimizer;
  std::optional<double> lr, momentum, rho, epsilon, trust, weight_decay, clip_norm, clip_value;
  bool nesterov = false, centered = false, momentum_correction = false;
  RateScale lr_scale = RateScale::none;
  double warmup_epochs = 0;
  std::optional<Schedule> schedule;
  double label_smoothing = 0;
  bool sync_bn = false;

  // machine
  std::string backend, precision = "float";
  std::optional<int> threads, io_threads;
  std::optional<bool> bind;
  bool winograd = true, skip_zeros = true;
  double bucket_mb = 25;
  std::optional<bool> shard_dense;
  AllreduceChoice allreduce;
  bool reproducible = false;
  Compression compress;

  // output
  std::string out, json;
  bool overwrite = false, dry_run = false;
  std::optional<int> verbose;
  std::size_t log_every = 10;
  bool profile = false;  ///< of `train`
  std::string timeline;  ///< of `train`
  StepRange timeline_steps{1, 20};
  std::vector<std::string> log_formats;  ///< of `train`: kLogFormats
  std::optional<int> repeat;
  int repeats() const { return repeat.value_or(5); }
  std::vector<int> micro_batches{1, 2, 4, 8, 11, 32};                  ///< of `bench kernels`
  std::size_t bytes = 52'871'940;                                      ///< of `bench allreduce`
  std::size_t images = 200;                                            ///< of `data synth`
  std::string format = "jpeg";                                         ///< of `data synth`
  std::string onnx, safetensors, model_file, export_layout = "keras";  ///< of `export`
  bool measure_limits = false;                                         ///< of `train`
  std::string end_with;                                                ///< of `train`
  std::string confusion;                                               ///< of `eval`
  std::optional<int> top;                                              ///< of `predict`

  // sweep and report
  SweepGrid grid;
  bool full_epochs = false, oversubscribe = false;
  bool plan_only = false, collect = false, retry = false;
  std::optional<int> task;
  std::string launcher, reference;
  Prices prices;
  bool diff = false;  ///< of `report`
  SimulationRequest simulation;

  /// The flags as they were given, wherever that was, for config.json: {"batch", "32"}.
  std::vector<std::pair<std::string, std::string>> given;
  std::set<std::string> switches;  ///< those among them that have no value

  DataRequest data_request(std::uint64_t split_seed) const {
    return {data.empty() ? "synthetic" : data,
            validation_split.value_or(kValidationSplit),
            split_seed,
            limit_train,
            limit_val,
            balanced,
            expand,
            allow_empty_classes};
  }
};

}  // namespace cputrain
