#pragma once

#include <memory>
#include <vector>

#include "backends/cpu/huge_memory.h"
#include "backends/cpu/ops/loss_step.h"
#include "backends/cpu/ops/step.h"
#include "compute/backend.h"

namespace cputrain::cpu {

/// Steps in execution order and the memory they share.
class CpuProgram final : public compute::Program {
 public:
  /// `graph` is what compile() was given. Throws Error(usage) for the rare graphs that only the
  /// reference backend runs (a layer other than dense that reads a flattened map).
  CpuProgram(const model::Graph& graph, const compute::CompileOptions&, const compute::ArenaSource&,
             int threads, const compute::KernelChoice& kernels);

  const compute::ParameterLayout& layout() const override { return layout_; }
  compute::Tally forward(const compute::MicroBatch&, const compute::Pass&) override;
  void backward(double loss_scale, compute::Accumulate, const compute::ReadySink& ready) override;
  int outputs() const override { return loss_->outputs(); }
  std::span<const float> probabilities() const override { return loss_->probabilities(); }
  void publish_statistics() override;
  std::vector<double> to_canonical(std::size_t parameter, const Array& arena) const override;
  std::vector<float> to_canonical_floats(std::size_t parameter, const Array& arena) const override;
  void from_canonical(std::size_t parameter, std::span<const double> values,
                      const Array& arena) const override;
  std::vector<compute::LayerTime> layer_times() const override;
  std::string take_findings() override;
  void use_findings(std::string_view) override;
  std::string findings() const override { return findings_; }
  bool trying() const override;
  void try_again() override;
  std::size_t workspace_bytes() const override;
  double waited() const override;

 private:
  bool is_most(int images);
  std::size_t size_index(int images) const;
  std::string methods() const;
  void backward_of_nothing(compute::Accumulate, const compute::ReadySink&);

  model::Graph graph_;  ///< rewritten; steps refer to its nodes
  int threads_;
  compute::Phase phase_;
  DnnlContext dnnl_;
  std::vector<int> sizes_;  ///< descending
  compute::MemoryPlan memory_;
  std::vector<std::unique_ptr<Step>> steps_;
  LossStep* loss_ = nullptr;                               ///< the last step
  std::vector<std::unique_ptr<ParameterFormat>> formats_;  ///< in model order
  std::vector<std::size_t> ready_after_;                   ///< by step: gradients final behind it
  compute::ParameterLayout layout_;
  compute::Arenas arenas_;
  std::vector<Range> own_gradients_;  ///< what this rank makes
  HugeMemory arena_{nullptr, {0}};
  Execution last_{};       ///< of the last forward pass
  int most_trained_ = 0;   ///< images of a training pass
  std::string findings_;   ///< in use
  bool searches_ = false;  ///< was trying algorithms when it was last asked
};

}  // namespace cputrain::cpu
