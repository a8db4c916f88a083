#pragma once

#include <optional>

#include "backends/cpu/amx/convolution.h"
#include "backends/cpu/convolution/convolution_place.h"

namespace cputrain::cpu {

/// A block by our kernels of bf16 in tiles.
class TileConvolution {
 public:
  static bool possible(const Planning&, const ConvolutionPlace&);
  TileConvolution(const Planning&, const ConvolutionPlace&);

  /// How the kernel lies in the arena.
  const dnnl::memory::desc& kernel_layout() const { return kernel_layout_; }
  const char* name() const { return convolution_.name(); }
  void bind(const Bindings&);
  void forward(const Execution&, ConvolutionTimes&);
  /// Gradients of the weights, of the source, or both.
  void backward(const Execution&, bool weights, bool data, ConvolutionTimes&);

 private:
  ConvolutionPlace place_;
  amx::Convolution convolution_;
  dnnl::memory::desc kernel_layout_;

  compute::MemoryPlan::Block forward_scratch_{}, backward_scratch_{};
  std::byte *forward_memory_ = nullptr, *backward_memory_ = nullptr;
  const float *src_value_ = nullptr, *weights_ = nullptr, *bias_ = nullptr;
  float *dst_value_ = nullptr, *dst_diff_ = nullptr, *src_diff_ = nullptr;
  float *diff_weights_ = nullptr, *diff_bias_ = nullptr;
  std::uint8_t* winners_ = nullptr;
};

}  // namespace cputrain::cpu
