#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/compile.h"
#include "backends/cuda/memory.h"
#include "compute/backend.h"

namespace cputrain::cuda {

/// The device that a program runs on; borrowed from the backend.
struct ProgramDevice {
  int device;
  int multiprocessors;
  ComputeStream& stream;
  compute::Memory& memory;
};

/// Ops in execution order and the memory that they share. Passes put all kernels into one stream;
/// forward waits for the sums, backward for each place behind which gradients are final.
class CudaProgram final : public compute::Program {
 public:
  /// Errors as make_ops().
  CudaProgram(const ProgramDevice&, const model::Graph&, const compute::CompileOptions&,
              const compute::ArenaSource&);

  const compute::ParameterLayout& layout() const override { return layout_; }
  compute::Tally forward(const compute::MicroBatch&, const compute::Pass&) override;
  void backward(double loss_scale, compute::Accumulate, const compute::ReadySink& ready) override;
  void publish_statistics() override {}  // no layer here has any
  int outputs() const override { return list_.loss->outputs(); }
  std::span<const float> probabilities() const override { return list_.loss->probabilities(); }
  std::vector<double> to_canonical(std::size_t parameter, const Array& arena) const override;
  std::vector<float> to_canonical_floats(std::size_t parameter, const Array& arena) const override;
  void from_canonical(std::size_t parameter, std::span<const double> values,
                      const Array& arena) const override;
  std::vector<compute::LayerTime> layer_times() const override;
  std::size_t workspace_bytes() const override { return memory_.peak(); }

 private:
  void lay_out_parameters();
  void allocate();
  void stage(const compute::MicroBatch&);
  void backward_of_nothing(compute::Accumulate);
  void run_backward(const Execution&, const compute::ReadySink&);
  Array range_of(std::size_t parameter, const Array& arena) const;

  ProgramDevice device_;
  model::Graph graph_;  ///< rewritten; ops refer to its nodes
  compute::MemoryPlan memory_;
  OpList list_;
  std::vector<ParameterFormat> formats_;                ///< in model order
  std::vector<std::size_t> ready_after_;                ///< by op: gradients final behind it, or 0
  std::vector<std::unique_ptr<Event>> gradients_done_;  ///< by op that makes any
  compute::ParameterLayout layout_;
  compute::Arenas arenas_;
  DeviceBlock arena_;
  PinnedBlock staged_;      ///< labels, and behind them samples
  DeviceBlock of_images_;   ///< the same on the device
  std::vector<int> sizes_;  ///< numbers of images that a call may have
  Execution last_{};        ///< of the last forward pass
};

}  // namespace cputrain::cuda
