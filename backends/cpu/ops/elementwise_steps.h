#pragma once

#include "backends/cpu/ops/step.h"

/// Steps that change a map in place.
namespace cputrain::cpu {

class ReluStep final : public Step {
 public:
  ReluStep(const Planning&, int step, const model::Graph::Node&, const Map&);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  Map map_;
  float *value_ = nullptr, *diff_ = nullptr;
  compute::LayerTime time_;
};

/// Forward passes of Phase::train draw which elements of each sample stay; backward reuses that.
class DropoutStep final : public Step {
 public:
  DropoutStep(const Planning&, int step, const model::Graph::Node&, const Map&);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  void draw(const Execution&, std::size_t image);

  Map map_;
  float rate_, scale_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  compute::MemoryPlan::Block kept_block_{};
  std::uint8_t* kept_ = nullptr;  ///< 0 or 1, where the map's numbers lie
  float *value_ = nullptr, *diff_ = nullptr;
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
