#pragma once

#include "backends/cpu/kernels/dense_product.h"
#include "backends/cpu/ops/step.h"

namespace cputrain::cpu {

/// Matrix product with the weights and a bias. The arena holds weights (in, out) with rows in the
/// order in which the source lies in memory, so that a blocked map needs no reordering; rows of
/// channels that only fill a block are zero.
class DenseStep final : public Step {
 public:
  /// `zeros_are_dead`: the source's, as for DenseProduct.
  DenseStep(const Planning&, int step, const model::Graph::Node&, const Source& src, const Map& dst,
            std::size_t first_parameter, bool zeros_are_dead = false);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  void write_weight_gradients(std::size_t images, bool overwrite);
  void add_bias_gradient(std::size_t images, bool overwrite);

  Source src_;
  Map dst_;
  std::size_t first_parameter_, in_, out_;  ///< in_ counts the filling
  bool bias_, learns_;
  DenseProduct product_;
  std::optional<compute::Factors> factors_;  ///< where the gradient of the weights is left as such
  compute::MemoryPlan::Block kept_block_{}, forward_block_{};
  float *src_data_ = nullptr, *src_diff_ = nullptr, *dst_data_ = nullptr, *dst_diff_ = nullptr;
  float *weights_ = nullptr, *weights_sum_ = nullptr, *bias_data_ = nullptr, *bias_sum_ = nullptr;
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
