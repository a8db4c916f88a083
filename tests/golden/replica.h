#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "compute/backend.h"
#include "golden/golden_file.h"

namespace cputrain::golden {

/// A network on one rank, driven through the contracts alone: compiled, started from its initial
/// weights, stepped.
class Replica {
 public:
  /// `micro_batches`: the sizes of the pieces that a batch will be run in.
  Replica(Backend&, const File&, std::vector<int> micro_batches);

  /// Forward and backward of a batch, cut into the pieces, and the exchange; then the update where
  /// there is a rule. Returns the sums over the batch.
  Tally step(const Pictures&, const Training* training, int step);

  std::vector<double> weights(std::size_t parameter) const;
  /// Of the mean loss of the last batch.
  std::vector<double> gradients(std::size_t parameter) const;
  const std::vector<Parameter>& parameters() const { return program_->layout().parameters; }

 private:
  void update(const Training&, int step, Range);

  Backend& backend_;
  std::vector<int> micro_batches_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<GradientExchange> exchange_;
  std::unique_ptr<Program> program_;
  std::vector<std::vector<double>> state_;  ///< a double an element: room for either precision
};

}  // namespace cputrain::golden
