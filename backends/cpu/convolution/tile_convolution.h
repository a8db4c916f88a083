#pragma once

#include <span>

#include "backends/cpu/amx/convolution.h"
#include "backends/cpu/convolution/convolution_place.h"

namespace cputrain::cpu {

/// A block by our kernels of bf16 in tiles: of numbers rounded to it, or of floats (`float_tiles`).
class TileConvolution {
 public:
  using Images = std::span<const std::uint8_t* const>;

  static bool possible(const Planning&, const ConvolutionPlace&);
  TileConvolution(const Planning&, const ConvolutionPlace&);

  /// How the kernel lies in the arena.
  const dnnl::memory::desc& kernel_layout() const { return kernel_layout_; }
  const char* name() const { return convolution_.name(); }
  /// Whether images are read where they lie, and not the map of their numbers.
  bool reads_images() const { return place_.block.image != nullptr; }
  /// Whether numbers are such that others must compute them, too: floats, where they are tiny.
  bool needs_others() const { return parts_ > 1; }
  void bind(const Bindings&);
  /// False where numbers are out of range; nothing is computed then.
  [[nodiscard]] bool forward(const Execution&, Images, ConvolutionTimes&);
  /// Gradients of the weights, of the source, or both; false as above.
  [[nodiscard]] bool backward(const Execution&, Images, bool weights, bool data, ConvolutionTimes&);

 private:
  bool in_range(const float* numbers, std::size_t count) const {
    return parts_ == 1 || amx::in_range(numbers, count);
  }
  amx::Source source(Images) const;

  ConvolutionPlace place_;
  int parts_;
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
