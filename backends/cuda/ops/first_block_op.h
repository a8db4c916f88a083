#pragma once

#include <vector>

#include "backends/cuda/kernels/products/first_block.h"
#include "backends/cuda/ops/op.h"
#include "compute/executor/graph_walk.h"

namespace cputrain::cuda {

/// The convolution of a network that begins as FirstBlock describes it, where nobody else reads
/// what lies between; null: it does not. `walk` stands on the input, and then on the ReLU.
const model::Graph::Node* take_first_block(compute::GraphWalk& walk);

/// From the images' bytes to the first pooled map.
class FirstBlockOp final : public DeviceOp {
 public:
  FirstBlockOp(const Planning&, int op, const model::Graph::Node& input,
               const model::Graph::Node& convolution, const Activation& dst, std::size_t parameter);

  Formats formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  FirstBlock of_images(int images) const;

  FirstBlock block_;  ///< but for the images
  Activation dst_;
  KernelAndBias kernel_;
  std::vector<int> slices_;  ///< by Execution::size
  compute::MemoryPlan::Block winners_{}, sums_{};

  void *dst_data_ = nullptr, *dst_diff_ = nullptr;
  WinnerWord* winners_data_ = nullptr;
  float* sums_data_ = nullptr;
};

}  // namespace cputrain::cuda
