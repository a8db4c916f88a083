#pragma once

#include "backends/cpu/alive_rows.h"
#include "backends/cpu/step.h"

namespace cputrain {

/// Matrix product with the weights and a bias. The arena holds weights (in, out) with rows in the
/// order in which the source lies in memory, so that a blocked map needs no reordering; rows of
/// channels that only fill a block are zero. Large layers skip zeros of the source (alive_rows.h)
/// wherever that pays for the numbers at hand, else it is a GEMM.
class DenseStep final : public Step {
 public:
  /// `zeros_are_dead`: the gradient of a source element that is zero is thrown away before anything
  /// learns from it, since a ReLU made it; so it need not be right.
  DenseStep(const Planning&, int step, const Graph::Node&, const Source& src, const Map& dst,
            std::size_t first_parameter, bool zeros_are_dead = false);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<LayerTime>& times) const override { times.push_back(time_); }

 private:
  void plan_skipping(const Planning&, int step);
  /// Notes which numbers of the source are not zero.
  void look_for_zeros(std::size_t images);
  /// Calls f(first image, sizes, its masks) for as many images at a time as alive_rows takes.
  template <class F>
  void for_groups(std::size_t images, const F& f) const;
  void write_weights_gradient(std::size_t images, bool overwrite);
  void write_source_gradient(std::size_t images);
  void add_bias_gradient(std::size_t images, bool overwrite);

  Source src_;
  Map dst_;
  std::size_t first_parameter_, in_, out_;  ///< in_ counts the filling
  bool bias_, learns_, zeros_are_dead_;
  bool may_skip_;  ///< it is large enough
  InstructionSet instruction_set_ = best_instruction_set();
  MemoryPlan::Block masks_block_{}, sums_block_{};
  std::uint64_t* masks_ = nullptr;  ///< of the last forward pass
  std::size_t alive_ = 0;           ///< so many numbers of its source were not zero
  float* sums_ = nullptr;
  float *src_data_ = nullptr, *src_diff_ = nullptr, *dst_data_ = nullptr, *dst_diff_ = nullptr;
  float *weights_ = nullptr, *weights_sum_ = nullptr, *bias_data_ = nullptr, *bias_sum_ = nullptr;
  LayerTime time_;
};

}  // namespace cputrain
