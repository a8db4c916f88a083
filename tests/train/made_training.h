#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "exchange/compression/compression.h"
#include "logging/reporter.h"
#include "train/trainer.h"

namespace cputrain::train {

/// Keeps what it hears.
class Recorder final : public logging::Reporter {
 public:
  void begin_epoch(const logging::EpochStart& r) override { starts.push_back(r); }
  void step(const logging::StepRecord& r) override { steps.push_back(r); }
  void epoch(const logging::EpochRecord& r) override { epochs.push_back(r); }
  void summary(const logging::SummaryRecord&) override {}

  std::vector<logging::EpochStart> starts;
  std::vector<logging::StepRecord> steps;
  std::vector<logging::EpochRecord> epochs;
};

struct MadeOptions {
  std::size_t samples = 22, validation = 5, batch = 5;
  int micro_batch = 2;
  bool sharded = false;  ///< the first dense layer
  float dropout = 0.5f;
  float l2 = 0;             ///< of the first dense layer
  bool batch_norm = false;  ///< after the convolution, synchronised: give micro_batch the share
  bool locked = false;      ///< arrays lie in a memory that the host cannot touch
  exchange::Compression compression{};
  data::PlanOptions plan{};
  OptimizerOptions optimizer{optim::RmsProp{}};
  optim::LearningRateOptions rate{.base = 0.01};
  bool shuffle = true;
  std::size_t bucket_bytes = 1000;
  comm::AllreduceChoice allreduce{};
  TrainOptions train{.epochs = 2, .steps = {}, .seed = 3, .target_accuracy = {}};
  std::function<bool()> stop = [] { return false; };
  Recorder* recorder =
      nullptr;  ///< hears what happens instead: a training that throws returns nothing
};

struct MadeResult {
  Recorder recorder;
  TrainResult result;
  std::string weights_hash;
  std::vector<double> weights;  ///< canonical, in model order
};

/// A whole training of a small network with dropout, in double on the reference backend, through
/// the real loader, on this rank of the communicator. Pictures are made, 2 classes.
MadeResult train_made(comm::Communicator&, const MadeOptions&);

}  // namespace cputrain::train
