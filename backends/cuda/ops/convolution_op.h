#pragma once

#include <map>

#include "backends/cuda/kernels/convolution.h"
#include "backends/cuda/ops/op.h"

namespace cputrain::cuda {

/// A convolution, or a dense layer: that is one of a window as large as what it reads, which is the
/// same as a window of 1 on one position that has all the numbers as channels.
class ConvolutionOp final : public DeviceOp {
 public:
  ConvolutionOp(const Planning&, int op, const model::Graph::Node&, const Source&,
                const Activation& dst, std::size_t parameter);

  std::vector<std::unique_ptr<compute::ParameterFormat>> formats() const override;
  void bind(const Bindings&) override;
  void forward(const Execution&) override;
  void backward(const Execution&) override;

 private:
  WindowShape window(int images) const;
  ConvolutionCall call(int images, float* workspace) const;

  Source src_;
  Activation dst_;
  WindowShape window_;  ///< but for the images
  bool bias_;
  std::size_t parameter_;                 ///< index of the kernel, which the bias follows
  std::map<int, ConvolutionPlan> plans_;  ///< by numbers of images that a call may have
  std::vector<OutputsFirst> formats_;
  compute::MemoryPlan::Block forward_workspace_{}, backward_workspace_{};

  float *src_data_ = nullptr, *dst_data_ = nullptr, *diff_src_ = nullptr, *diff_dst_ = nullptr;
  float *weights_ = nullptr, *bias_data_ = nullptr, *diff_weights_ = nullptr, *diff_bias_ = nullptr;
  float *forward_space_ = nullptr, *backward_space_ = nullptr;
};

}  // namespace cputrain::cuda
