#pragma once

#include <vector>

#include "backends/cpu/kernels/layer_norm.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cpu {

/// Layer normalization. Forward keeps mean and deviation of each pixel; gradients of gamma and beta
/// are summed in a fixed order, whatever the number of threads. `Number`: of both maps.
template <class Number>
class LayerNormOp final : public compute::UnaryOp<Op, Number> {
 public:
  LayerNormOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
              const Activation& dst, std::size_t first_parameter);

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Unary = compute::UnaryOp<Op, Number>;
  using Unary::dst_, Unary::src_, Unary::dst_data_, Unary::src_data_, Unary::dst_diff_,
      Unary::src_diff_, Unary::time_;

  kernels::PixelNorm of_image(std::size_t image) const;
  template <class F>
  void for_pixels(std::size_t images, const F&) const;
  void sum_slopes(std::size_t images);
  void write_parameter_gradients(bool overwrite);

  model::LayerNorm layer_;
  std::size_t first_parameter_;
  kernels::PixelNorm norm_;
  compute::MemoryPlan::Block statistics_block_;
  float* statistics_ = nullptr;  ///< for each image means of its pixels, then 1 / deviations
  /// A number a lane, with zeros behind the channels.
  std::vector<float> gamma_, beta_, ones_;
  std::vector<double> group_slopes_;                          ///< groups x (sums, products) x lanes
  const float *gamma_data_ = nullptr, *beta_data_ = nullptr;  ///< null where there is none
  float *gamma_sum_ = nullptr, *beta_sum_ = nullptr;          ///< null where nothing is learnt
};

}  // namespace cputrain::cpu
