#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "compute/backend.h"
#include "exchange/exchange.h"
#include "optim/update_rule.h"

namespace cputrain::loop {

struct OptimizerOptions {
  optim::UpdateRule rule;
  double weight_decay = 0;             ///< for kernels, not for biases
  std::optional<double> clip_value{};  ///< every element of the gradient is kept within this
  std::optional<double> clip_norm{};   ///< and then the norm of the whole gradient within that
  bool momentum_correction = false;    ///< momentum follows the rate: Goyal et al. 2017, remark 2
  /// Averages of the weights are kept: after each update average = ema * average + (1 - ema) *
  /// weight, beginning with the first weights, as Keras' use_ema and timm's ModelEma. 0: none.
  double ema = 0;
};

/// The name of averages among states.
inline constexpr std::string_view kAverageName = "ema";

/// Names of arrays that are kept for what is owned: the rule's, and averages.
optim::StateNames state_names(const OptimizerOptions&);

/// Bytes of state that an optimizer keeps for the ranges that a rank owns.
std::size_t state_bytes(const OptimizerOptions&, std::span<const Range> owned, DType);

/// An update rule with its state for the ranges of the arena that this rank owns. From the reduced
/// gradient of the loss it goes: plus the gradient of the layers' L2 penalty (2 * l2 * w), clipped
/// by value, clipped by the norm of the whole, then the rule. That is Keras' order.
class Optimizer {
 public:
  Optimizer(const OptimizerOptions&, compute::Backend&, const exchange::GradientExchange&,
            const compute::ParameterLayout&);
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// `updates` were made before it. Momentum correction multiplies the momentum of a step at which
  /// the rate changes by new rate / old rate, as Horovod does, since the velocity holds the old
  /// rate.
  void begin_step(std::uint64_t updates, double learning_rate);
  /// What must be summed over owners before update() may be called; none for most rules.
  std::span<const exchange::Measure> measures() const { return measures_; }
  /// Updates the weights of one owned range from its reduced gradients.
  void update(Range owned);
  /// The update of all that this rank owns, where it needs nothing but the gradients: no measure,
  /// one range, one rate. Valid for this step.
  std::optional<compute::StepUpdate> whole_update();

  bool averages() const { return options_.ema > 0; }
  /// Averages begin as the weights are.
  void begin_averages();
  /// After the update of an owned range; nothing where there are no averages.
  void average(Range owned);
  /// The same of moving statistics, once ranks have the same ones, as if they had been so in each
  /// of the last so many updates.
  void average_statistics(std::size_t updates);
  /// All weights of this exchange, and moving statistics, against their averages. Collective.
  void swap_averages(exchange::GradientExchange&);
  /// Averages of all that this rank owns, and of moving statistics.
  std::vector<compute::ArenaPart> all_averages() const;
  /// Averages of moving statistics, by parameter: the same on all ranks.
  std::vector<compute::ArenaPart> averaged_statistics() const;

  const OptimizerOptions& options() const { return options_; }

  // What a training that goes on later must have again, between two steps.

  /// Array `slot` of state_names(), of each range that this rank owns, in the backend's
  /// memory.
  std::vector<compute::ArenaPart> state(std::size_t slot) const;
  /// The last step's: momentum correction compares with it. 0 before the first.
  double last_rate() const { return step_.learning_rate; }
  void set_last_rate(double rate) { step_.learning_rate = rate; }

 private:
  /// A run of elements of one owned range that is treated alike.
  struct Segment {
    Range range;
    float l2;
    double rate;                       ///< what the learning rate is multiplied by
    std::optional<std::size_t> layer;  ///< in layers_, for rates of its own
    optim::UpdateSlice slice{};
  };
  struct Owned {
    Range range;
    std::vector<Segment> segments;
    std::vector<compute::OwnedArray> state{};  ///< in the backend's memory, zeros at first
    compute::OwnedArray average{};             ///< the same; empty where there are none
    std::unique_ptr<compute::Update> update{};
    /// What this step's rate is multiplied by, by segment; empty where it is 1 for all.
    std::vector<double> trust{};
  };

  /// Where the norms of a layer's blocks lie.
  struct LayerBlocks {
    std::size_t first;  ///< its first block of the arena
    Range slots;        ///< in either half of layer_norms_
  };

  Owned& find_owned(Range);
  void move_average(Range, const Array& average, double decay);
  void swap(Range, const Array& average);
  Owned own(Range, const compute::ParameterLayout&);
  std::vector<Segment> segments_of(Range, const compute::ParameterLayout&);
  void place(Owned&);
  optim::UpdatePlan plan_of(const Owned&) const;
  double decay_of(const Segment&) const;
  void complete_gradient(const Segment&);
  void clip_by_norm(const Segment&);
  std::pair<std::span<double>, std::span<double>> norms_of(const LayerBlocks&);
  std::span<double> measure_gradient();
  std::span<double> measure_layers();
  double trust(const Segment&);

  OptimizerOptions options_;
  compute::Backend& backend_;
  const exchange::GradientExchange& exchange_;
  std::vector<Owned> owned_;
  /// Averages of parameters that are not learnt and move, where they are kept.
  std::vector<std::pair<Range, compute::OwnedArray>> statistics_;
  std::vector<exchange::Measure> measures_;
  optim::UpdateStep step_;  ///< that was begun last
  // Norms, squared, block by block of the arena, which ranks own as a whole: their sum is then the
  // same bits at any number of ranks.
  std::vector<double> gradient_norms_;
  std::vector<double> layer_norms_;      ///< weights' in the first half, gradients' in the second
  std::vector<LayerBlocks> layers_;      ///< by parameter
  std::optional<double> gradient_norm_;  ///< this step's, once it is known
};

}  // namespace cputrain::loop
