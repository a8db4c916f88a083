#pragma once

#include "backends/cpu/amx/dense.h"
#include "backends/cpu/kernels/dense_product.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cpu {

/// What all matrix products with weights and a bias share. The arena holds weights (in, out) with
/// rows in the order in which the source lies in memory, so that a blocked one needs no reordering;
/// rows of channels that only fill a block are zero.
class DenseLayerOp : public compute::UnaryOp<Op> {
 public:
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;

 protected:
  DenseLayerOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
               const Activation& dst, std::size_t first_parameter);
  void write_bias_gradient(std::size_t images, bool overwrite);

  std::size_t first_parameter_, in_, out_;  ///< in_ counts the filling
  bool bias_, learns_;
  std::optional<compute::Factors> factors_;  ///< where the gradient of the weights is left as such
  float *weights_ = nullptr, *weights_sum_ = nullptr, *bias_data_ = nullptr, *bias_sum_ = nullptr;
};

/// By this rank alone.
class DenseOp final : public DenseLayerOp {
 public:
  /// `zeros_are_dead`: the source's, as for DenseProduct.
  DenseOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
          const Activation& dst, std::size_t first_parameter, bool zeros_are_dead = false);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void plan_tiles(const Planning&, int op);
  /// Whether tiles take so many images.
  bool in_tiles(std::size_t images) const { return tiles_ && images >= amx::Dense::kFewestImages; }
  void write_weight_gradients(std::size_t images, bool overwrite);

  DenseProduct product_;
  std::optional<amx::Dense> tiles_;  ///< where the weights are large and this CPU has them
  compute::MemoryPlan::Block tiles_forward_{}, tiles_backward_{};
  std::byte *forward_scratch_ = nullptr, *backward_scratch_ = nullptr;
  compute::MemoryPlan::Block kept_block_{}, forward_block_{};
};

}  // namespace cputrain::cpu
