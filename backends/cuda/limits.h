#pragma once

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "compute/backend.h"

namespace cputrain::cuda {

/// Measures the calling thread's device, whose stream is idle: multiply-adds of the program's
/// numbers, and the triad. An emulated device, whose times mean nothing, does little work.
compute::Limits measure_device(Stream, const DeviceProperties&, Numbers, const compute::Together&);

}  // namespace cputrain::cuda
