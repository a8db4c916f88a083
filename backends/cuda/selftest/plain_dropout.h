#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/kernels/elementwise.h"
#include "core/random/random.h"

namespace cputrain::cuda {

/// Which numbers of the samples' maps, without padding, dropout keeps: by core's mask, element by
/// element of each sample.
inline std::vector<bool> kept_by_mask(const DropoutCall& call, const PassFacts& facts,
                                      const std::vector<std::uint32_t>& samples) {
  const auto elements = static_cast<std::size_t>(call.positions * call.channels);
  std::vector<bool> kept;
  for (const std::uint32_t sample : samples) {
    const DropoutMask mask(call.rate, facts.seed, facts.step, call.layer, sample);
    for (std::size_t i = 0; i < elements; ++i) {
      kept.push_back(mask.keeps(static_cast<std::uint32_t>(i / 4))[i % 4]);
    }
  }
  return kept;
}

}  // namespace cputrain::cuda
