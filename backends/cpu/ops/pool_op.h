#pragma once

#include "backends/cpu/ops/op.h"

namespace cputrain::cpu {

/// Max, average or global average pooling on its own.
class PoolOp final : public Op {
 public:
  PoolOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
         const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  struct Prepared {
    int images;
    Operation forward, backward;
    Call pool, unpool;
  };
  const DnnlContext& dnnl_;
  Source src_;
  Activation dst_;
  bool max_, training_;
  std::vector<Prepared> prepared_;
  compute::MemoryPlan::Block workspace_{}, forward_scratch_{}, backward_scratch_{}, part_block_{};
  float *src_diff_ = nullptr, *part_ = nullptr;  ///< where it adds: the sum, what it adds
};

}  // namespace cputrain::cpu
