#pragma once

#include <memory>
#include <string>

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

/// Which plugin a program loads: gpu_plugin.cpp, no_cuda.cpp or emulated_plugin.cpp, which a build
/// or a program chooses by linking it.
struct PluginName {
  std::string file;     ///< "libcputrain_cuda.so"; empty where the program has none
  std::string missing;  ///< why, then
  std::string remedy;   ///< and what to try
};

/// Error(usage) where the environment names one that there is not.
PluginName plugin_name();

}  // namespace cputrain::cuda
