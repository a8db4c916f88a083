#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "data/batch_plan.h"

namespace cputrain::loop {

/// A wrong prediction, and what the network made of it.
struct WrongPrediction {
  std::uint64_t image = 0;  ///< its place in the samples of the plan
  std::uint32_t truth = 0, prediction = 0;
  float probability = 0;           ///< the prediction's
  float probability_of_truth = 0;  ///< that of the class that it is

  bool operator==(const WrongPrediction&) const = default;
};

/// Keeps the wrong predictions with the highest probabilities; of equal ones those of earlier
/// images, so that any number of ranks keeps the same. NaN is no prediction.
class SurestErrors {
 public:
  explicit SurestErrors(std::size_t most) : most_(most) {}

  /// Predictions about these images: `outputs` are as many rows of a network.
  void add(std::span<const std::uint64_t> images, std::span<const std::int32_t> labels,
           std::span<const float> outputs);
  /// Those of all ranks, the surest first. Collective.
  std::vector<WrongPrediction> gather(comm::Communicator&) const;

 private:
  void keep(const WrongPrediction&);

  std::size_t most_;
  std::vector<WrongPrediction> kept_;  ///< sorted
};

/// Places of this rank's images in the order in which an evaluation without shuffling has them.
std::vector<std::uint64_t> evaluation_order(const data::BatchPlan&);

}  // namespace cputrain::loop
