#pragma once

#include <memory>

#include "backends/cuda/plugin_api.h"

namespace cputrain::cuda {

/// The backend on one device. Error(internal) where the device refuses.
std::unique_ptr<compute::Backend> make_device_backend(const DeviceChoice& = {});

}  // namespace cputrain::cuda
