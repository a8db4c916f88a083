#pragma once

#include "backends/cpu/ops/step.h"

namespace cputrain::cpu {

/// Max, average or global average pooling on its own.
class PoolStep final : public Step {
 public:
  PoolStep(const Planning&, int step, const model::Graph::Node&, const Source& src, const Map& dst);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  struct Prepared {
    int images;
    Operation forward, backward;
    Call pool, unpool;
  };
  Source source_;
  Map src_, dst_;
  bool max_, training_;
  std::vector<Prepared> prepared_;
  compute::MemoryPlan::Block workspace_{}, forward_scratch_{}, backward_scratch_{}, part_block_{};
  float *src_diff_ = nullptr, *part_ = nullptr;  ///< where it adds: the sum, what it adds
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
