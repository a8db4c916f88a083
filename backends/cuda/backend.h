#pragma once

#include <memory>

#include "compute/backend.h"

namespace cputrain::cuda {

/// The backend on one device, which `sharers` ranks have together. `captures`: its programs make
/// CUDA graphs of their passes. Error(internal) where the device refuses.
std::unique_ptr<compute::Backend> make_device_backend(int device, int sharers,
                                                      bool captures = true);

}  // namespace cputrain::cuda
