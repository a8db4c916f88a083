#pragma once

#include "backends/cuda/kernels/batch_norm/batch_norm.h"
#include "backends/cuda/kernels/packs.h"

namespace cputrain::cuda {

/// A row of factors for the channels of a pack.
template <class N>
CPUTRAIN_DEVICE Pack<N> load_factors(const ChannelFactors& factors, ChannelFactors::Row row,
                                     int channel) {
  return Pack<N>::of_floats(factors.of(row) + channel);
}

/// What normalises the channels of a pack.
template <class N>
struct Normalization {
  Pack<N> mean, scale, shift;

  CPUTRAIN_DEVICE static Normalization load(const ChannelFactors& factors, int channel) {
    return {load_factors<N>(factors, ChannelFactors::mean, channel),
            load_factors<N>(factors, ChannelFactors::scale, channel),
            load_factors<N>(factors, ChannelFactors::shift, channel)};
  }
  /// Rounded alike wherever it is computed, so that backward finds the sign that forward saw.
  CPUTRAIN_DEVICE float normalized(int i, float value) const {
    return __fmaf_rn(__fsub_rn(value, mean.of[i]), scale.of[i], shift.of[i]);
  }
};

}  // namespace cputrain::cuda
