#pragma once

#include <mutex>

#include "comm/communicator.h"
#include "compute/memory.h"
#include "compute/parameters/parameters.h"

namespace cputrain::loop {

/// The weights of a rank, and how and where they lie.
struct WeightsArena {
  const compute::ParameterLayout& layout;
  Array values;
  compute::Memory& memory;
};

/// Makes moving statistics (batch normalization's) the same on every rank: their mean, weighted by
/// the images that each rank trained on since the last call. Collective. With no images at all, or
/// none of such parameters, nothing changes, and the answer is false.
/// `weights_mutex` is held while the weights change.
bool average_statistics(const WeightsArena&, double own_images, comm::Communicator&,
                        std::mutex& weights_mutex);

}  // namespace cputrain::loop
