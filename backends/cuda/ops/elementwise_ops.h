#pragma once

#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"

/// Operators that work number by number, most of them in place.
namespace cputrain::cuda {

/// The images' bytes, which lie on the device, become numbers.
class InputOp final : public DeviceOp {
 public:
  InputOp(const Planning&, const model::Graph::Node&, const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;

 private:
  ImageLoad load_;  ///< but for the images
  Activation dst_;
  void* dst_data_ = nullptr;
};

class RectifierOp final : public compute::InPlaceOp<DeviceOp, void> {
 public:
  RectifierOp(const Planning&, int op, const model::Graph::Node&, const model::Rectifier&,
              const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  model::Rectifier rectifier_;
};

/// Its gradient depends on what it reads, so that stays.
class SiluOp final : public compute::UnaryOp<DeviceOp, void> {
 public:
  SiluOp(const Planning&, int op, const model::Graph::Node&, const Source& src,
         const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;
};

/// Draws again on the way back what it drew forward; of evaluation it changes nothing.
class DropoutOp final : public compute::InPlaceOp<DeviceOp, void> {
 public:
  DropoutOp(const Planning&, int op, const model::Graph::Node&, const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  void apply(const Execution&, void* values) const;

  float rate_;
  std::uint32_t layer_;  ///< Graph::Node::origin
  const PassFacts* facts_;
};

}  // namespace cputrain::cuda
