#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "compute/executor/target.h"
#include "model/graph.h"

namespace cputrain::compute {

/// Runs a graph as a list of operators that share one block of memory: a program of every backend
/// that keeps activations in such a list.
class Executor final : public Program {
 public:
  /// Error(usage) as Target::make_ops(), and where the graph does not end in a loss.
  Executor(std::unique_ptr<Target>, const model::Graph&, const CompileOptions&, const ArenaSource&);
  ~Executor() override;

  const StoredParameters& parameters() const override { return *parameters_; }
  void forward(const MicroBatch&, const Pass&) override;
  void backward(const Backward&) override;
  Pending<Tally> tally() override;
  void publish_statistics() override;
  std::span<const float> probabilities() override;
  std::vector<LayerTime> layer_times() const override;
  void time_layers(bool on) override;
  std::size_t workspace_bytes() const override;
  double waited() const override;
  Tuner& tuner() override { return tuner_; }
  std::optional<FeatureFacts> features() const override;
  void keep_features(std::size_t most_bytes) override;
  std::uint64_t images_from_features() const override { return prefix_ ? prefix_->taken() : 0; }

 private:
  void compile(const CompileOptions&);
  void lay_out_parameters();
  void allocate();
  bool is_most(int images);
  std::size_t size_index(int images) const;
  void run_forward(const MicroBatch&, const Pass&);
  void run_waiting_forward();
  void call_forward(const Execution&);
  void run_backward(const Execution&, const ReadySink&);
  void run_backward_of_nothing(Accumulate);
  void wait();

  std::unique_ptr<Target> target_;
  model::Graph graph_;  ///< rewritten; operators refer to its nodes
  Phase phase_;
  std::vector<int> sizes_;  ///< descending
  MemoryPlan memory_;
  std::unique_ptr<system::SharedBlock> arena_;  ///< the activations'
  OpList ops_;
  LossOp* loss_ = nullptr;  ///< the last of them
  /// By operator: gradients [0, n) are final behind its backward. 0 where no more are, or all.
  std::vector<std::size_t> final_behind_;
  std::optional<StoredParameters> parameters_;
  Arenas arenas_;
  std::vector<Range> own_gradients_;  ///< what this rank makes
  Tuner tuner_;
  std::optional<FrozenPrefix> prefix_;  ///< where features are kept
  Execution last_{};                    ///< the last forward pass's
  bool forward_waits_ = false;          ///< its operators have not been called
  bool times_layers_ = false;
  int most_trained_ = 0;  ///< images of a training pass
};

}  // namespace cputrain::compute
