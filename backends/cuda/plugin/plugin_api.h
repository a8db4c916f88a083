#pragma once

#include <cstdint>
#include <memory>

#include "backends/cuda/kernels/numbers.h"
#include "compute/backend.h"
#include "compute/devices.h"
#include "compute/selftest_case.h"

/// What the program and its CUDA plugin know of each other. The plugin is a file of its own, so
/// that the program starts where there is neither a CUDA runtime nor a GPU. It takes all that it
/// uses of src/ from the program, which has one copy of everything: errors that the plugin throws
/// are the program's. So both must be made from the same headers, and a mark in the plugin's file
/// (kBuildMark) is compared before any of it is run.
namespace cputrain::cuda {

/// Which backend is wanted.
struct DeviceChoice {
  int device = 0;           ///< among those that the plugin lists
  int ranks_on_device = 1;  ///< that share it: each has its part of the memory
  Numbers numbers = Numbers::exact;
  bool captures = true;   ///< programs make CUDA graphs of their passes
  bool measures = false;  ///< trainings find tiles of products; not where a device is emulated
};

/// What a plugin can do.
struct PluginCalls {
  compute::DeviceList (*devices)();
  /// As make_cuda_backend().
  std::unique_ptr<compute::Backend> (*make)(const DeviceChoice&);
  /// The cases of its kernels that `selftest` runs, on a device.
  void (*run_kernel_cases)(int device, std::uint64_t seed, const compute::SelftestSink&);
};

/// The plugin's one function, with C's name and no arguments.
inline constexpr const char* kPluginEntry = "cputrain_cuda_plugin";
using PluginEntry = const PluginCalls* (*)();

/// Stands once in a plugin's file; what it was made from follows, up to the sign that ends it.
#define CPUTRAIN_PLUGIN_MARK "cputrain CUDA plugin made from <"
inline constexpr char kBuildMarkEnd = '>';

}  // namespace cputrain::cuda
