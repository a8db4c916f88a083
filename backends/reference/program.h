#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backends/reference/layers.h"
#include "backends/reference/narrow_factors.h"
#include "backends/reference/reference_backend.h"
#include "backends/reference/sharded_dense.h"
#include "compute/backend.h"

namespace cputrain::reference {

/// A graph run node by node; every node keeps its output, and its gradient when training.
template <class T>
class ReferenceProgram final : public compute::Program {
 public:
  ReferenceProgram(const model::Graph&, const compute::CompileOptions&, const compute::ArenaSource&,
                   Factors);

  const compute::StoredParameters& parameters() const override { return parameters_; }
  void forward(const compute::MicroBatch&, const compute::Pass&) override;
  compute::Pending<compute::Tally> tally() override { return std::exchange(tally_, {}); }
  void backward(const compute::Backward&) override;
  std::span<const float> probabilities() override { return probabilities_; }
  void publish_statistics() override;
  std::vector<compute::LayerTime> layer_times() const override { return times_; }
  std::size_t workspace_bytes() const override;
  double waited() const override;

 private:
  struct Values {
    std::vector<T> dst, diff;  ///< images x elements of the node's output
    int parameter = -1;        ///< index of the first one in the layout; the others follow it
    bool learns = false;       ///< its parameters have gradients
    bool wants_diff = false;   ///< something that learns lies at or before this node
    std::vector<double> mean, inverse_deviation;  ///< batch norm: of the last forward pass
    double count = 0;                             ///< batch norm: values a channel in it
    /// Batch norm's statistics while they move; empty until the first pass of a step.
    std::vector<T> moving_mean, moving_variance;
    std::unique_ptr<ShardedDense<T>> sharded;  ///< where the node's ranks compute it together
  };

  void share_layers(comm::Communicator* node, int images);
  void load_images(const compute::MicroBatch&, const model::Input&);
  T* weights(int parameter) const;
  T* gradients(int node, int parameter) const;
  LayerArgs<T> args(int node);
  LayerArgs<T> args(int node, const model::Convolution&);
  BatchNormArgs<T> batch_norm_args(int node);
  void begin_moving(int node);
  void add(int node);
  template <class F>
  void for_part_pixels(int node, const F&) const;
  void concatenate(int node);
  void take_apart(int node);
  void forward_node(int node);
  void backward_node(int node, T loss_scale);
  bool has_bias(int node) const { return graph_.nodes()[node].parameters.size() > 1; }
  DropoutDraw dropout(int node, float rate) const;

  model::Graph graph_;
  comm::Communicator* synchronise_;
  bool every_rank_passes_;  ///< those without images, too
  compute::StoredParameters parameters_;
  compute::Arenas arenas_;
  Factors factors_;
  NarrowFactors<T> narrow_;
  std::vector<Range> own_gradients_;  ///< what this rank makes
  std::vector<Values> values_;
  std::vector<compute::LayerTime> times_;
  std::vector<float> probabilities_;
  compute::Tally tally_;  ///< since it was last asked

  // The last forward pass:
  compute::Pass pass_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
};

}  // namespace cputrain::reference
