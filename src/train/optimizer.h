#pragma once

#include <cstddef>
#include <vector>

#include "comm/exchange.h"
#include "compute/backend.h"
#include "train/update_rule.h"

namespace cputrain {

struct OptimizerOptions {
  UpdateRule rule;
  double learning_rate = 0.001;
  double weight_decay = 0;  ///< applied to kernels, not to biases
};

/// An update rule with its state for the ranges of the arena that this rank owns.
class Optimizer {
 public:
  Optimizer(const OptimizerOptions&, Backend&, const GradientExchange&, const ParameterLayout&);

  /// Updates the weights of one owned range from its reduced gradients.
  void update(Range owned, const Arenas&, std::uint64_t step);

  double learning_rate() const { return options_.learning_rate; }
  const OptimizerOptions& options() const { return options_; }
  std::size_t state_bytes() const;

 private:
  /// A run of elements of one owned range that weight decay treats alike.
  struct Segment {
    Range range;
    bool decays;
  };
  struct Owned {
    Range range;
    std::vector<Segment> segments;
    std::vector<std::vector<std::byte>> state;  ///< one block of zeros a state array
  };

  std::vector<Segment> segments_of(Range, const ParameterLayout&) const;
  UpdateSlice slice_of(Owned&, const Segment&, const Arenas&, std::uint64_t step);

  OptimizerOptions options_;
  Backend& backend_;
  DType dtype_;
  std::vector<Owned> owned_;
};

}  // namespace cputrain
