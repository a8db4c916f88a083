#pragma once

#include <optional>

#include "backends/cpu/convolution/convolution_place.h"
#include "backends/cpu/sparse/first_convolution.h"
#include "backends/cpu/sparse/sparse_convolution.h"

namespace cputrain::cpu {

/// A block by our own kernels, which skip zeros: the first layer's where images are read,
/// SparseConvolution's elsewhere.
class SkippingConvolution {
 public:
  using Images = FirstConvolution::Images;

  static bool possible(const ConvolutionPlace&);
  SkippingConvolution(const Planning&, const ConvolutionPlace&);

  /// How the kernel lies in the arena.
  const dnnl::memory::desc& kernel_layout() const { return kernel_layout_; }
  /// Whether images are read where they lie, and not the map of their numbers.
  bool reads_images() const { return first_.has_value(); }
  void bind(const Bindings&);
  void forward(const Execution&, Images, ConvolutionTimes&);
  /// Gradients of the weights, of the source, or both.
  void backward(const Execution&, Images, bool weights, bool data, ConvolutionTimes&);

 private:
  void plan_memory(const Planning&);
  void backward_weights(const Execution&, Images);

  ConvolutionPlace place_;
  std::optional<SparseConvolution> inner_;
  std::optional<FirstConvolution> first_;
  dnnl::memory::desc kernel_layout_;

  compute::MemoryPlan::Block forward_scratch_{}, data_scratch_{}, weights_scratch_{},
      turned_block_{};
  std::byte *forward_memory_ = nullptr, *data_memory_ = nullptr, *weights_memory_ = nullptr;
  float* turned_ = nullptr;  ///< the kernel, as backward-data wants it
  const float *src_value_ = nullptr, *weights_ = nullptr, *bias_ = nullptr;
  float *dst_value_ = nullptr, *dst_diff_ = nullptr, *src_diff_ = nullptr;
  float *diff_weights_ = nullptr, *diff_bias_ = nullptr;
  std::uint8_t* winners_ = nullptr;
};

}  // namespace cputrain::cpu
