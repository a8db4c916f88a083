#pragma once

#include "backends/cpu/step.h"

namespace cputrain {

/// Pixels to numbers, channels first: the layout that convolutions of three channels have kernels
/// for. Reads the images where they lie.
class InputStep final : public Step {
 public:
  InputStep(const Planning&, const Graph::Node&, const Map& dst);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings& bindings) override { dst_data_ = bindings.at(dst_.value); }
  void forward(const Execution&) override;
  void backward(const Execution&) override {}
  void append_times(std::vector<LayerTime>& times) const override { times.push_back(time_); }

 private:
  Input input_;
  Map dst_;
  float* dst_data_ = nullptr;
  LayerTime time_;
};

}  // namespace cputrain
