#pragma once

#include <memory>
#include <optional>

#include "compute/backend.h"
#include "scaling/simulation/simulator.h"

namespace cputrain::sim {

/// A backend whose programs, sums and updates take the time that a cost table and a platform give
/// them and touch no array.
class SimBackend final : public compute::Backend {
 public:
  /// `local_rank` counts the `local_size` ranks of its node.
  SimBackend(const simulation::SimulationJob&, int rank, int local_rank, int local_size);
  ~SimBackend() override;

  const compute::BackendFacts& facts() const override { return facts_; }
  std::unique_ptr<compute::Program> compile(const model::Graph&, const compute::CompileOptions&,
                                            const compute::ArenaSource&) override;
  std::unique_ptr<compute::Update> make_update(const optim::UpdatePlan&) override;
  void change_gradients(const optim::GradientOperation&, const optim::UpdateSlice&) override;
  void sum(std::span<const Array> src, const Array& dst) override;
  compute::Pending<std::vector<double>> block_norms(
      std::span<const compute::ArenaPart> parts) override;
  compute::Limits measure_limits(const compute::Together&) override { return {}; }

  /// Seconds that this rank has waited for memory.
  double memory_stall() const;

 private:
  struct Parts;
  const simulation::SimulationJob& job_;
  int local_rank_;
  simulation::Team of_node_;
  compute::BackendFacts facts_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cputrain::sim
