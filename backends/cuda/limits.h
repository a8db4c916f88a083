#pragma once

#include "backends/cuda/device/device.h"
#include "compute/backend.h"

namespace cputrain::cuda {

/// Of the calling thread's device, whose stream is idle: multiply-adds in precision `exact`, each
/// of which is three of TF32, and the triad. Of an emulated device, whose times mean nothing, a
/// little.
compute::Limits measure_device(Stream, const DeviceProperties&, const compute::Together&);

}  // namespace cputrain::cuda
