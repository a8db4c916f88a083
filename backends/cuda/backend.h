#pragma once

#include <memory>

#include "compute/backend.h"

namespace cputrain::cuda {

/// The backend on one device, which `sharers` ranks have together. Error(internal) where the device
/// refuses.
std::unique_ptr<compute::Backend> make_device_backend(int device, int sharers);

}  // namespace cputrain::cuda
