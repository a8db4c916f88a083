#pragma once

#include <cstdint>

#include "backends/cuda/device/device.h"
#include "compute/image_feed.h"

namespace cputrain::cuda {

/// What differs from step to step of an update.
struct UpdateFacts {
  float figures[4] = {};  ///< the rule's element (optim/update_elements.h), as it lies there
  float keep = 1;         ///< what weights that decay are multiplied by
};

/// What differs from pass to pass of the same kind. Kernels read it on the device, so that a graph
/// of them suits every pass.
struct PassFacts {
  // On the device.
  const std::uint8_t* bytes = nullptr;         ///< images, RGB, one behind the other
  const compute::ImageMove* moves = nullptr;   ///< one for each image of the pass, which it makes
  const std::int32_t* labels = nullptr;        ///< as well
  const std::uint32_t* samples = nullptr;      ///< as well
  const compute::MixedLabel* mixed = nullptr;  ///< as well; null where labels are alone
  std::uint64_t seed = 0, step = 0;            ///< the training's
  double loss_scale = 1;                       ///< backward
  UpdateFacts update{};                        ///< for the update behind backward, if any
};

/// *dst = facts. They travel with the launch, so no memory of the host has to wait for it.
template <class Facts>
void write_facts(Stream, const Facts& facts, Facts* dst);

}  // namespace cputrain::cuda
