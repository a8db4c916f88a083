#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"

namespace cputrain::cuda {

/// What differs from pass to pass of the same kind. Kernels read it on the device, so that a graph
/// of them suits every pass.
struct PassFacts {
  const std::uint8_t* pixels = nullptr;    ///< on the device, as what follows: H*W*3 bytes an image
  const std::int32_t* labels = nullptr;    ///< one for each image
  const std::uint32_t* samples = nullptr;  ///< as well
  std::uint64_t seed = 0, step = 0;        ///< of the training
  double loss_scale = 1;                   ///< backward
};

/// *dst = facts. They travel with the launch, so no memory of the host has to wait for it.
void write_facts(Stream, const PassFacts& facts, PassFacts* dst);

}  // namespace cputrain::cuda
