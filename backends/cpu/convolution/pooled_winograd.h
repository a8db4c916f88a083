#pragma once

#include <optional>
#include <vector>

#include "backends/cpu/convolution/convolution_place.h"
#include "backends/cpu/winograd/pass.h"

namespace cputrain::cpu {

/// Forward of a block with a pool of 2 x 2 by our Winograd kernels: tiles are pooled as they are
/// finished, so that the convolution's own output is never stored.
class PooledWinograd {
 public:
  /// Whether the block has such a pool, and Winograd pays for so many images.
  static bool possible(const ConvolutionPlace&, int images);
  PooledWinograd(const Planning&, const ConvolutionPlace&);

  void bind(const Bindings&);
  void forward(const Execution&, ConvolutionTimes&) const;

 private:
  ConvolutionPlace place_;
  std::vector<winograd::Pass> passes_;  ///< as Planning::sizes
  compute::MemoryPlan::Block scratch_{};
  std::byte* scratch_data_ = nullptr;
  const float *src_ = nullptr, *weights_ = nullptr, *bias_ = nullptr;
  float* dst_ = nullptr;
  std::uint8_t* winners_ = nullptr;
};

}  // namespace cputrain::cpu
