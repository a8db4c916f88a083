#pragma once

#include "backends/cpu/kernels/max_pool.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cpu {

/// Max pooling on its own, of floats, by the kernels that pool behind convolutions: the library's
/// loses NaN.
class MaxPoolOp final : public compute::UnaryOp<Op> {
 public:
  /// Whether the kernels know such a layer of such a map.
  static bool possible(const model::MaxPool&, const Activation& src);

  MaxPoolOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
            const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  MaxPoolShape shape_;
  compute::MemoryPlan::Block winners_block_{}, part_block_{};
  std::uint8_t* winners_ = nullptr;
  float* part_ = nullptr;  ///< where it adds to the source's gradient: what it adds
};

}  // namespace cputrain::cpu
