#pragma once

#include <optional>

#include "backends/cpu/kernels/bf16.h"
#include "backends/cpu/kernels/max_pool.h"
#include "backends/cpu/ops/op.h"
#include "compute/executor/activation_ops.h"

namespace cputrain::cpu {

/// Max, average or global average pooling on its own, of such numbers.
template <class Number>
class PoolOp final : public compute::UnaryOp<Op, Number> {
 public:
  PoolOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
         const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  using Unary = compute::UnaryOp<Op, Number>;
  using Unary::dst_, Unary::src_, Unary::dst_data_, Unary::src_data_, Unary::dst_diff_,
      Unary::src_diff_, Unary::time_;

  struct Prepared {
    int images;
    Operation forward, backward;
    Call pool, unpool;
  };
  const DnnlContext& dnnl_;
  bool max_, training_;
  /// Where our kernel knows the pool: oneDNN's is quicker and loses NaN, so a map that has one is
  /// pooled once more. The gradient needs no other winners: the loss is NaN, too.
  std::optional<MaxPoolShape> spreads_nan_;
  std::vector<Prepared> prepared_;
  compute::MemoryPlan::Block workspace_{}, forward_scratch_{}, backward_scratch_{}, part_block_{};
  Number* part_ = nullptr;  ///< where it adds to the source's gradient: what it adds
};

}  // namespace cputrain::cpu
