#pragma once

#include <vector>

#include "backends/cpu/kernels/batch_norm_kernels.h"
#include "backends/cpu/ops/map_listener.h"
#include "compute/executor/activation_ops.h"
#include "core/casts.h"

namespace cputrain::cpu {

/// Batch normalization and the ReLU behind it in one pass. The library's own can neither take its
/// statistics from several processes nor add to a gradient that others have written, so the loops
/// are ours. Sums are made in a fixed order, whatever the number of threads. `Number`: of both
/// maps. Where a convolution writes its source, or its gradient, it takes its sums as that goes on.
template <class Number>
class BatchNormOp final : public compute::UnaryOp<Op, Number>, public MapListener {
 public:
  BatchNormOp(const Planning&, int op, const model::Graph::Node&, bool relu, const Source& src,
              const Activation& dst, std::size_t first_parameter);

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void forward_of_nothing(const Execution&) override;
  void backward_of_nothing(compute::Accumulate) override;
  void publish_statistics() override;
  void value_written(const Execution&, const Range& images) override;
  void gradient_written(const Execution&, const Range& images) override;

 private:
  using Unary = compute::UnaryOp<Op, Number>;
  using Unary::dst_, Unary::src_, Unary::dst_data_, Unary::src_data_, Unary::dst_diff_,
      Unary::src_diff_, Unary::time_;

  /// Images are measured in so many groups at most, each by one thread for a block of channels.
  static constexpr std::size_t kGroups = 8;

  std::size_t planes() const { return src_.layout.blocks(); }
  std::size_t lanes() const { return planes() * to_size(src_.layout.block); }
  std::size_t pixels() const;
  /// Where the plane of a block of channels begins.
  template <class T>
  T* plane(T* data, std::size_t image, std::size_t block) const {
    const compute::SampleLayout& layout = src_.layout;
    return data + image * layout.size() + block * pixels() * to_size(layout.block);
  }
  bool learns(const compute::Pass&) const;
  void sum_over_ranks(std::vector<double>&) const;

  template <class F>
  void sum_in_groups(const Range& images, std::size_t all, const F&);
  template <class F>
  void for_planes_backwards(std::size_t images, const F&) const;

  void measure(const Range& images, std::size_t all);
  void join_statistics(std::size_t images);
  void join_groups(std::size_t images);
  void join_ranks();
  void move_statistics();
  void prepare_lanes(bool learns);
  void normalize(std::size_t images);

  void sum_slopes(const Range& images, std::size_t all);
  void join_slopes();
  void write_parameter_gradients(bool overwrite);
  void write_gradient(std::size_t images);

  model::BatchNorm layer_;
  bool relu_, frozen_, training_;
  std::size_t first_parameter_;
  comm::Communicator* synchronise_;

  // A number a lane: channels that only fill the last block stay 0.
  std::vector<float> scale_, shift_, mean_f_, slope_, offset_;
  std::vector<double> mean_, variance_, inverse_;
  std::vector<double> group_means_,
      group_squares_;         ///< groups x lanes; in backward: sums, products
  std::size_t summed_ = 0;    ///< images that are in them while this operator is not yet run
  std::vector<double> sums_;  ///< what ranks add up
  std::vector<float> new_mean_, new_variance_;  ///< moving ones of a step that is not done
  bool moved_ = false;                          ///< whether these hold anything
  double count_ = 0;                            ///< values a channel, over all ranks
  bool learnt_ = false;                         ///< whether the last forward pass learnt

  const float *gamma_ = nullptr, *beta_ = nullptr;
  float *moving_mean_ = nullptr, *moving_variance_ = nullptr;
  float *gamma_sum_ = nullptr, *beta_sum_ = nullptr;
};

}  // namespace cputrain::cpu
