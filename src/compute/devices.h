#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cputrain::compute {

/// What a device is at, by its driver; empty where that is not known.
struct DeviceUse {
  std::optional<int> busy_percent{};  ///< in the last second or so
  std::optional<int> processes{};     ///< that compute there
  std::optional<std::size_t> free_memory{};
  std::vector<std::string> links{};  ///< "PCIe 5 x16", "NVLink to 1" (another one's index)
};

/// A device beside the CPUs that a backend can compute on.
struct Device {
  int index = 0;           ///< among those that this process may use
  std::string name;        ///< "NVIDIA H100 80GB HBM3"
  std::string identity;    ///< the same for two processes of a host that share it, no others
  std::string facts;       ///< for people: "compute capability 9.0, 132 multiprocessors, ..."
  std::string at_first{};  ///< for people: what may make a first start slow; empty: nothing
  bool emulated = false;   ///< computes on the CPU, for tests: no time of it means anything
  std::optional<DeviceUse> use{};  ///< nothing before Services::survey
};

/// A backend's devices that this process may use, or why it has none.
struct DeviceList {
  std::vector<Device> devices;
  std::string why_none;  ///< "no NVIDIA driver"
  std::string remedy;    ///< what to try then
  /// Behind a survey: "NCCL 2.28.9 (/usr/lib/libnccl.so.2)", or why their sums need the host.
  std::string sums{};
};

/// The refusal of a list without devices.
inline std::string no_device_text(const std::string& backend, const DeviceList& list) {
  return "--backend " + backend + ": " + list.why_none + " (it computes on a GPU); " + list.remedy +
         ", or use another --backend";
}

}  // namespace cputrain::compute
