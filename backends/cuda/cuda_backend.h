#pragma once

#include <memory>

#include "backends/cuda/plugin/plugin_api.h"
#include "compute/backend.h"

/// The CUDA backend as the program sees it: a plugin that is loaded when it is asked for.
namespace cputrain::cuda {

/// Whether this build has a plugin at all.
bool cuda_plugin_built();

/// The devices that this process may use. Loads the plugin; where there is none, or none that this
/// program may load, the list has the reason. Never fails otherwise.
compute::DeviceList cuda_devices();

/// The backend on a device that cuda_devices() listed (Device::index). Error(usage) with the reason
/// where there is none.
std::unique_ptr<compute::Backend> make_cuda_backend(const DeviceChoice&);

/// Cases of the kernels themselves, on a device that cuda_devices() listed; the rest as there.
void run_kernel_cases(int device, std::uint64_t seed, const compute::SelftestSink&);

}  // namespace cputrain::cuda
