#pragma once

#include <optional>

#include "backends/cuda/ops/op.h"
#include "compute/executor/activation_ops.h"
#include "compute/executor/graph_walk.h"

/// Operators that work number by number, and those that make one activation of several.
namespace cputrain::cuda {

/// Two pixels side by side share a position of what a convolution of stride 2 reads, where that
/// alone reads the images: less of it is padding.
struct PixelPairs {
  Shape image;
  int left;  ///< zeros before each row, as the convolution has them

  /// Nothing where the network begins otherwise. `walk` stands on the input.
  static std::optional<PixelPairs> of(compute::GraphWalk walk);
  /// Windows begin with whole pairs: those of the map do so behind a zero where `left` is odd.
  int shift() const { return left % 2; }
  Shape map() const {
    return {image.height, pieces(shift() + image.width, kPixelsOfPair), kChannelBlock};
  }
};

/// Whether windows of the convolution see to the zeros that a layer before it puts around a map.
bool takes_zeros(const model::Convolution&, const model::ZeroPad&);

/// The images' bytes, which lie on the device, become numbers.
class InputOp final : public DeviceOp {
 public:
  InputOp(const Planning&, const model::Graph::Node&, const std::optional<PixelPairs>&,
          const Activation& dst);

  void bind(const Bindings&) override;
  void forward(const Execution&) override;

 private:
  ImageLoad load_;  ///< but for the images
  Activation dst_;
  void* dst_data_ = nullptr;
};

class RectifierOp final : public compute::InPlaceOp<DeviceOp, void> {
 public:
  RectifierOp(const Planning&, int op, const model::Graph::Node&, const Pointwise&,
              const Activation&);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  Pointwise rectifier_;
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

/// The sum of activations; of one, a copy.
class AddOp final : public compute::SumOp<DeviceOp, void> {
 public:
  AddOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;
};

/// The gradient of a sum becomes that of a part, or is added to what is there.
void pass_on(Stream, Numbers, std::size_t count, const void* diff, void* of_part, bool add);

/// Maps one behind the other by their channels.
class ConcatOp final : public compute::SumOp<DeviceOp, void> {
 public:
  ConcatOp(const Planning&, int op, std::string name, std::vector<Source>, const Activation& dst);

  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  ConcatPart part(std::size_t i, int images) const;

  std::vector<int> firsts_;  ///< channels of the whole with which the parts begin
};

}  // namespace cputrain::cuda
