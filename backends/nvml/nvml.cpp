#include "backends/nvml/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/casts.h"

namespace cputrain::nvml {
namespace {

constexpr int kInsufficientSize = 7;  ///< NVML_ERROR_INSUFFICIENT_SIZE, with the size
constexpr int kOfNvlink = 2;          ///< NVML_P2P_CAPS_INDEX_NVLINK

/// "GPU-01234567-89ab-..." of the 32 digits that Device::identity has.
std::string uuid_of(const std::string& identity) {
  if (identity.size() != 32) return identity;
  return fmt::format("GPU-{}-{}-{}-{}-{}", identity.substr(0, 8), identity.substr(8, 4),
                     identity.substr(12, 4), identity.substr(16, 4), identity.substr(20));
}

/// What two GPUs meet in: nvmlGpuTopologyLevel_t.
std::string way_over_pcie(int level) {
  if (level <= 0) return "on one board";
  if (level <= 10) return "over one PCIe switch";
  if (level <= 20) return "over PCIe switches";
  if (level <= 30) return "over PCIe of one CPU";
  if (level <= 40) return "over a NUMA node";
  return "over both CPUs";
}

class Survey {
 public:
  Survey(const Calls& calls, const std::vector<compute::Device>& devices) : calls_(calls) {
    for (const compute::Device& device : devices) {
      Device* handle = nullptr;
      if (calls_.handle_by_uuid(uuid_of(device.identity).c_str(), &handle) != 0) handle = nullptr;
      handles_.push_back(handle);
    }
  }

  compute::DeviceUse use(std::size_t i) const {
    compute::DeviceUse use;
    Device* const device = handles_[i];
    if (!device) return use;
    Memory memory;
    if (calls_.memory_info(device, &memory) == 0) use.free_memory = memory.free;
    Utilization busy;
    if (calls_.utilization(device, &busy) == 0) use.busy_percent = to_int(busy.gpu);
    unsigned count = 0;
    const int counted = calls_.processes(device, &count, nullptr);
    if (counted == 0 || counted == kInsufficientSize) use.processes = to_int(count);
    unsigned generation = 0, width = 0;
    if (calls_.pcie_generation(device, &generation) == 0 &&
        calls_.pcie_width(device, &width) == 0) {
      use.links.push_back(fmt::format("PCIe {} x{}", generation, width));
    }
    for (std::size_t other = 0; other < handles_.size(); ++other) {
      const std::string way = other == i ? "" : way_to(device, handles_[other]);
      if (!way.empty()) use.links.push_back(fmt::format("{} to {}", way, other));
    }
    return use;
  }

 private:
  /// "" where it is not known.
  std::string way_to(Device* device, Device* other) const {
    if (!other) return "";
    int status = 1, level = 0;
    if (calls_.p2p_status(device, other, kOfNvlink, &status) == 0 && status == 0) return "NVLink";
    return calls_.common_ancestor(device, other, &level) == 0 ? way_over_pcie(level) : "";
  }

  const Calls& calls_;
  std::vector<Device*> handles_;  ///< null: NVML does not know the device
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// The library stays loaded: it keeps what it opened.
const Calls* load() {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return nullptr;
  static Calls found;
  const bool all = find(library, "nvmlInit_v2", found.init) &&
                   find(library, "nvmlDeviceGetHandleByUUID", found.handle_by_uuid) &&
                   find(library, "nvmlDeviceGetMemoryInfo", found.memory_info) &&
                   find(library, "nvmlDeviceGetUtilizationRates", found.utilization) &&
                   find(library, "nvmlDeviceGetComputeRunningProcesses_v3", found.processes) &&
                   find(library, "nvmlDeviceGetP2PStatus", found.p2p_status) &&
                   find(library, "nvmlDeviceGetTopologyCommonAncestor", found.common_ancestor) &&
                   find(library, "nvmlDeviceGetMaxPcieLinkGeneration", found.pcie_generation) &&
                   find(library, "nvmlDeviceGetCurrPcieLinkWidth", found.pcie_width);
  return all && found.init() == 0 ? &found : nullptr;
}

}  // namespace

const Calls* calls() {
  static const Calls* const loaded = load();
  return loaded;
}

std::vector<compute::DeviceUse> use_of(const Calls* calls,
                                       const std::vector<compute::Device>& devices) {
  std::vector<compute::DeviceUse> all(devices.size());
  if (!calls) return all;
  const Survey survey(*calls, devices);
  for (std::size_t i = 0; i < devices.size(); ++i) all[i] = survey.use(i);
  return all;
}

}  // namespace cputrain::nvml
