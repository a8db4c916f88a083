#pragma once

#include "backends/cpu/ops/op.h"

namespace cputrain::cpu {

/// Pixels to numbers, channels first: the layout that the library's convolutions of three channels
/// have kernels for. Reads the images where they lie.
void split_images(const model::Input&, const compute::SampleLayout&,
                  std::span<const std::uint8_t* const>, float* planes);

/// Does that, unless the only reader of the images has taken it over.
class InputOp final : public Op {
 public:
  InputOp(const Planning&, const model::Graph::Node&, const Activation& dst);

  void bind(const Bindings& bindings) override {
    if (!left_to_reader_) dst_data_ = bindings.value(dst_);
  }
  void leave_to_reader() { left_to_reader_ = true; }
  void forward(const Execution&) override;

 private:
  model::Input input_;
  Activation dst_;
  bool left_to_reader_ = false;
  float* dst_data_ = nullptr;
};

}  // namespace cputrain::cpu
