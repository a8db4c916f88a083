#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "exchange/exchange.h"
#include "tests/golden/numbers.h"

namespace cputrain::golden {

/// First values of a parameter, in the canonical layout.
using Start =
    std::function<std::vector<double>(const model::Graph::Node&, const model::ParameterSpec&)>;
/// Those that training starts from: `initial_values`.
Start keras_start(std::uint64_t seed);
/// Those of the built-in models' tests: `start_values`.
Start varied_start(std::uint64_t seed);

struct Update {
  optim::UpdateRule rule;
  double rate;
};

/// A network on one rank, driven through the contracts alone: compiled, started from its first
/// weights, stepped.
class Replica {
 public:
  /// `micro_batches`: the sizes of the pieces that a batch will be run in.
  Replica(compute::Backend&, const model::Graph&, const Start&, std::vector<int> micro_batches);

  /// Forward and backward of a batch, cut into the pieces, and the exchange; then the update where
  /// there is one. Returns the sums over the batch.
  compute::Tally step(const Samples&, const Update*, int step);

  std::vector<double> weights(std::size_t parameter) const;
  /// Those of the mean loss of the last batch, for a learnt parameter.
  std::vector<double> gradients(std::size_t parameter) const;
  /// Those of the last piece.
  std::span<const float> probabilities() { return program_->probabilities(); }
  const std::vector<compute::Parameter>& parameters() const {
    return program_->layout().parameters;
  }

 private:
  void update(const Update&, int step, Range);

  compute::Backend& backend_;
  std::vector<int> micro_batches_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<exchange::GradientExchange> exchange_;
  std::unique_ptr<compute::Program> program_;
  std::vector<compute::OwnedArray> state_;
};

/// A network with its first weights that only runs forward, in evaluation or in training mode.
class Evaluator {
 public:
  Evaluator(compute::Backend&, const model::Graph&, const Start&, std::vector<int> sizes,
            compute::Phase phase = compute::Phase::evaluate);
  compute::Tally run(const compute::MicroBatch& batch) {
    program_->forward(batch, {.phase = phase_, .probabilities = true});
    return program_->tally().wait();
  }
  std::span<const float> probabilities() { return program_->probabilities(); }

 private:
  compute::Phase phase_;
  compute::OwnedArray weights_;
  std::unique_ptr<compute::Program> program_;
};

}  // namespace cputrain::golden
