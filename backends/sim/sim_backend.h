#pragma once

#include <memory>
#include <optional>

#include "compute/backend.h"
#include "simulation/job.h"

namespace cputrain {

/// A backend whose programs, sums and updates take the time that a cost table and a platform give
/// them and touch no array.
class SimBackend final : public Backend {
 public:
  SimBackend(const SimulationJob&, int rank, const LocalRank&);
  ~SimBackend() override;

  std::string_view name() const override { return "simulated"; }
  std::string describe() const override;
  DType dtype() const override { return DType::f32; }
  std::unique_ptr<Program> compile(const Graph&, const CompileOptions&,
                                   const ArenaSource&) override;
  void update(const UpdateRule&, const UpdateSlice&) override;
  void change_gradients(const GradientOperation&, const UpdateSlice&) override;
  void sum(std::span<const Array> src, const Array& dst) override;
  double sum_of_squares(const Array&) override;
  void block_norms(const Array&, std::size_t position, std::span<double> blocks) override;
  Limits measure_limits(const Together&) override { return {}; }

  /// Seconds that this rank has waited for memory.
  double memory_stall() const;

 private:
  struct Parts;
  const SimulationJob& job_;
  LocalRank local_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cputrain
