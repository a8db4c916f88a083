#pragma once

#include <memory>

#include "backends/cuda/plugin/plugin_api.h"
#include "backends/nccl/group.h"

namespace cputrain::cuda {

/// How the devices of several ranks sum.
struct DeviceGroups {
  const nccl::Library* library = nullptr;  ///< null: the process' own
  nccl::TimeLimits limits{};
};

/// The backend on one device. Error(internal) where the device refuses.
std::unique_ptr<compute::Backend> make_device_backend(const DeviceChoice& = {},
                                                      const DeviceGroups& = {});

}  // namespace cputrain::cuda
