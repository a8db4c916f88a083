#pragma once

#include <cstddef>

#include "training/compiled_training.h"

namespace cputrain::training {

/// Decides --data-on-device, the same on all ranks: whether the training images stay on the device
/// as a whole. `program`: bytes that the rest of the training takes there on this rank.
/// Error(usage) where that was asked for and cannot be. Collective where the backend has devices.
bool keep_images_on_device(const Session&, const TrainingPlan&, const MemoryBefore&,
                           std::size_t program);

}  // namespace cputrain::training
