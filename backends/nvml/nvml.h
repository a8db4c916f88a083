#pragma once

#include <string>
#include <vector>

#include "compute/devices.h"

namespace cputrain::nvml {

struct Device;  ///< nvmlDevice_st

/// nvmlMemory_t, in bytes.
struct Memory {
  unsigned long long total = 0, free = 0, used = 0;
};

/// nvmlUtilization_t: percent of the last second or so.
struct Utilization {
  unsigned gpu = 0, memory = 0;
};

/// What the program uses of NVML, by its C names; names and numbers are from NVIDIA's "NVML API
/// Reference Guide". 0 is success.
struct Calls {
  int (*init)() = nullptr;
  int (*handle_by_uuid)(const char*, Device**) = nullptr;
  int (*memory_info)(Device*, Memory*) = nullptr;
  int (*utilization)(Device*, Utilization*) = nullptr;
  int (*processes)(Device*, unsigned* count, void* infos) = nullptr;
  int (*p2p_status)(Device*, Device*, int capability, int* status) = nullptr;
  int (*common_ancestor)(Device*, Device*, int* level) = nullptr;
  /// The most that GPU and slot do together: an idle link goes back to the first generation.
  int (*pcie_generation)(Device*, unsigned*) = nullptr;
  int (*pcie_width)(Device*, unsigned*) = nullptr;
};

/// libnvidia-ml.so.1 of the driver; null where there is none.
const Calls* calls();

/// What each of these devices is at and how they are linked. What NVML does not report stays
/// unknown; all of it where `calls` is null.
std::vector<compute::DeviceUse> use_of(const Calls* calls,
                                       const std::vector<compute::Device>& devices);

}  // namespace cputrain::nvml
