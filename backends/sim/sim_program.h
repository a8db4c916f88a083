#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/sim/core.h"
#include "backends/sim/layer_costs.h"
#include "backends/sim/simulated_dense.h"
#include "compute/backend.h"

namespace cputrain::sim {

/// A program that takes the time of a graph and computes nothing: answers are those of a network
/// that guesses. Sharded layers meet the other ranks as they really do.
class SimProgram final : public compute::Program {
 public:
  SimProgram(const model::Graph&, const compute::CompileOptions&, const compute::ArenaSource&,
             const LayerCosts&, SimulatedCore&);

  const compute::StoredParameters& parameters() const override { return parameters_; }
  void forward(const compute::MicroBatch&, const compute::Pass&) override;
  compute::Pending<compute::Tally> tally() override { return std::exchange(tally_, {}); }
  void backward(const compute::Backward&) override;
  void publish_statistics() override {}
  std::span<const float> probabilities() override { return probabilities_; }
  std::vector<compute::LayerTime> layer_times() const override { return {}; }
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  double waited() const override;
  /// Names of the layers that the node's ranks compute together.
  std::vector<std::string> sharded() const;

 private:
  SimulatedDense* dense_at(std::size_t layer) const;
  void finish(SimulatedWork&);
  void add(SimulatedWork&, SimulatedWork layer);

  const LayerCosts& costs_;
  SimulatedCore& core_;
  compute::StoredParameters parameters_;
  std::size_t workspace_bytes_;
  std::vector<std::unique_ptr<SimulatedDense>> dense_;
  std::vector<float> probabilities_;
  compute::Tally tally_;  ///< since it was last asked
  int images_ = 0;        ///< in the last forward pass
};

}  // namespace cputrain::sim
