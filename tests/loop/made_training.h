#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "compute/backend.h"
#include "exchange/buckets.h"
#include "exchange/compression/compression.h"
#include "loop/loop.h"

namespace cputrain::loop {

/// Keeps what it hears.
class Recorder final : public Reporter {
 public:
  void begin_epoch(const EpochStart& r) override { starts.push_back(r); }
  void step(const StepRecord& r) override { steps.push_back(r); }
  void epoch(const EpochRecord& r) override { epochs.push_back(r); }
  void rate_changed(int epoch, double rate) override { rates.emplace_back(epoch, rate); }

  std::vector<EpochStart> starts;
  std::vector<StepRecord> steps;
  std::vector<EpochRecord> epochs;
  std::vector<std::pair<int, double>> rates;  ///< from which epoch on
};

/// Everything that a training is between two steps, of one rank: what a checkpoint holds.
struct MadeState {
  Progress progress{};
  std::vector<double> weights{};             ///< the arena, with what is not learnt
  std::vector<std::vector<double>> state{};  ///< of the optimizer, by array and owned range
  std::vector<double> unsent{};              ///< by top-k compression
  std::vector<Range> averaged{};             ///< of weights, whose averages end `state`
};

/// Keeps what it is told.
class MadeControl final : public Control {
 public:
  bool stop_requested() override { return stop && stop(); }
  bool checkpoint_due(const Progress& progress) override { return due && due(progress); }
  void take_checkpoint(const Progress& progress) override { taken.push_back(copy(progress)); }
  void stopping(const Progress& progress) override { stopped.push_back(copy(progress)); }
  void finished(const Progress& progress) override { ended.push_back(progress); }
  void best_weights(const Progress& progress) override { best.push_back(progress); }

  std::function<bool()> stop{};
  std::function<bool(const Progress&)> due{};
  std::function<MadeState(const Progress&)> copy{};  ///< train_made() fills it in
  std::vector<MadeState> taken, stopped;
  std::vector<Progress> ended, best;
};

struct MadeOptions {
  std::size_t samples = 22, validation = 5, batch = 5;
  int micro_batch = 2;
  int classes = 2;       ///< that the network knows: images are of the first two
  bool sharded = false;  ///< the first dense layer
  float dropout = 0.5f;
  float l2 = 0;              ///< of the first dense layer
  bool frozen = false;       ///< the first dense layer
  bool batch_norm = false;   ///< after the convolution: give micro_batch the share
  bool synchronised = true;  ///< batch norm's statistics
  bool locked = false;       ///< arrays lie in a memory that the host cannot touch
  /// What computes; plain loops in double where nobody says.
  std::function<std::unique_ptr<compute::Backend>()> backend{};
  exchange::Compression compression{};
  data::PlanOptions plan{};
  OptimizerOptions optimizer{optim::RmsProp{}};
  optim::LearningRateOptions rate{.base = 0.01};
  bool shuffle = true;
  int prefetch = 1;  ///< micro-batches that are made ahead
  std::size_t bucket_bytes = 1000;
  bool overlap = false;
  comm::AllreduceChoice allreduce{};
  LoopOptions train{{.epochs = 2}, 3};  // with the seed
  std::function<bool()> stop = [] { return false; };
  std::function<bool(const Progress&)> due{};  ///< asks for checkpoints; on rank 0
  /// Breaks something, on this rank's thread.
  FaultPoint fault{};
  /// Where images are read for each micro-batch: hears of each, and throws where that fails.
  std::function<void(std::uint32_t sample)> reads{};
  const MadeState* start = nullptr;       ///< where the training goes on
  std::vector<std::uint64_t> left_out{};  ///< steps, from 1
  // They hear what happens instead: a training that throws returns nothing.
  Recorder* recorder = nullptr;
  MadeControl* control = nullptr;
};

/// The same with one way to sum: by default ranks take the one that is quicker just now, whose
/// rounding may be another.
MadeOptions summed_by(MadeOptions, const std::string& way = "shm");

struct MadeResult {
  Recorder recorder;
  MadeControl control;
  TrainResult result;
  std::string weights_hash;
  std::vector<double> weights;  ///< canonical, in model order
};

/// A whole training of a small network with dropout through the real loader, on this rank of the
/// communicator. Images are made, of 2 classes.
MadeResult train_made(comm::Communicator&, const MadeOptions&);
/// Every rank's training with `size` ranks as threads.
std::map<int, MadeResult> train_ranks(int size, const MadeOptions&);
/// The same where each rank has options of its own.
std::map<int, MadeResult> train_ranks(int size, const std::function<MadeOptions(int rank)>&);

/// Recipes for large batches, each with everything that looks at the gradient as a whole.
std::map<std::string, MadeOptions> made_recipes();

/// Mean losses of steps, then of epochs and their validation.
std::vector<double> losses(const MadeResult&);

}  // namespace cputrain::loop
