// The plugin's side of plugin_api.h.
#include "backends/cuda/plugin/plugin_api.h"
#include "core/casts.h"

#include <fmt/format.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/device/device.h"
#include "backends/cuda/plugin/machine_code.h"
#include "backends/cuda/selftest/kernel_cases.h"
#include "contracts.h"  // which the build writes

namespace cputrain::cuda {
namespace {

/// Kernels are made for compute capability 8.0 and newer: for asynchronous copies and bf16.
constexpr int kLeastMajor = 8;

// load_plugin.cpp finds it in the file. Not `inline`: the program's own would take its place.
[[gnu::used]] constexpr char kMark[] = CPUTRAIN_PLUGIN_MARK CPUTRAIN_CONTRACTS ">";

/// ptxas of CUDA 13.0 takes 5 s for all kernels on one core of an EPYC (Zen 5). Whether the driver
/// has kept them from an earlier start, it does not tell.
std::string at_first(const DeviceProperties& p) {
  if (!driver_compiles(CPUTRAIN_CUDA_ARCHITECTURES, p.major, p.minor)) return "";
  return fmt::format(
      "{}: this build has no machine code for compute capability {}.{}, so the driver compiles "
      "kernels where they are first used; that may take half a minute in all, and later starts "
      "find them in ~/.nv/ComputeCache",
      p.name, p.major, p.minor);
}

compute::Device device_of(int index, const DeviceProperties& p) {
  return {
      .index = index,
      .name = p.name,
      .identity = p.identity,
      .facts = fmt::format("compute capability {}.{}, {} multiprocessors, {:.1f} GB; {}", p.major,
                           p.minor, p.multiprocessors, to_double(p.memory) / 1e9, p.runtime),
      .at_first = at_first(p),
      .emulated = p.emulated};
}

/// What to try for a reason of why_no_device().
std::string remedy_of(const std::string& why) {
  if (why.starts_with("no NVIDIA driver")) return "install NVIDIA's driver where there is a GPU";
  if (why.starts_with("an NVIDIA driver")) {
    return "install a newer driver, or build with an older CUDA (see backends/README.md)";
  }
  return "see which GPUs nvidia-smi lists";
}

compute::DeviceList devices() {
  compute::DeviceList list{.devices = {}, .why_none = why_no_device(), .remedy = {}};
  if (!list.why_none.empty()) {
    list.remedy = remedy_of(list.why_none);
    return list;
  }
  for (int index = 0; index < device_count(); ++index) {
    const DeviceProperties properties = device_properties(index);
    if (properties.major >= kLeastMajor) {
      list.devices.push_back(device_of(index, properties));
    } else if (list.why_none.empty()) {
      list.why_none = fmt::format("{} has compute capability {}.{}, and kernels are made for {}.0",
                                  properties.name, properties.major, properties.minor, kLeastMajor);
      list.remedy = "use a newer GPU (A100, H100, RTX 30 and newer)";
    }
  }
  if (!list.devices.empty()) list.why_none = list.remedy = {};
  return list;
}

std::unique_ptr<compute::Backend> make_backend(const DeviceChoice& wanted) {
  DeviceChoice choice = wanted;
  choice.measures = wanted.measures && !device_properties(wanted.device).emulated;
  return make_device_backend(choice);
}

constexpr PluginCalls kCalls{
    .devices = devices, .make = make_backend, .run_kernel_cases = run_device_cases};

}  // namespace
}  // namespace cputrain::cuda

extern "C" const cputrain::cuda::PluginCalls* cputrain_cuda_plugin();
const cputrain::cuda::PluginCalls* cputrain_cuda_plugin() { return &cputrain::cuda::kCalls; }
