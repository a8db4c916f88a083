#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compute/layer_time.h"
#include "data/batch_source.h"
#include "training/session/session.h"

namespace cputrain::bench {

/// What was measured: by round, seconds of every layer, with what ran it.
struct KernelRounds {
  int micro_batch, passes;  ///< images at once; how often in a round
  std::vector<std::vector<compute::LayerTime>> layers{};

  int images() const { return micro_batch * passes; }
};

/// A network whose passes are timed layer by layer, for one number of images at once. Nothing is
/// updated: weights stay as they were given, so every round computes the same.
class KernelTrial {
 public:
  /// `weights`: a file, or empty for initial ones by seed. A round is the first `passes`
  /// micro-batches of the source.
  KernelTrial(const training::Session&, const model::Graph&, const std::string& weights,
              std::uint64_t seed, int micro_batch, int passes);

  /// Rounds that do not count: until the program has found its algorithms, and one more.
  void warm_up(data::BatchSource&);
  void measure(data::BatchSource&);

  const KernelRounds& rounds() const { return rounds_; }

 private:
  void round(data::BatchSource&);

  std::uint64_t seed_;
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
  KernelRounds rounds_;
};

}  // namespace cputrain::bench
