#pragma once

#include "backends/cpu/ops/step.h"

namespace cputrain::cpu {

/// Pixels to numbers, channels first: the layout that the library's convolutions of three channels
/// have kernels for. Reads the images where they lie.
void split_images(const model::Input&, const SampleLayout&, std::span<const std::uint8_t* const>,
                  float* planes);

/// Does that, unless the only reader of the images has taken it over.
class InputStep final : public Step {
 public:
  InputStep(const Planning&, const model::Graph::Node&, const Map& dst);

  std::vector<std::unique_ptr<ParameterFormat>> formats() const override { return {}; }
  void bind(const Bindings& bindings) override {
    if (!left_to_reader_) dst_data_ = bindings.at(dst_.value);
  }
  void leave_to_reader() { left_to_reader_ = true; }
  void forward(const Execution&) override;
  void backward(const Execution&) override {}
  void append_times(std::vector<compute::LayerTime>& times) const override {
    times.push_back(time_);
  }

 private:
  model::Input input_;
  Map dst_;
  bool left_to_reader_ = false;
  float* dst_data_ = nullptr;
  compute::LayerTime time_;
};

}  // namespace cputrain::cpu
