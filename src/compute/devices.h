#pragma once

#include <string>
#include <vector>

namespace cputrain::compute {

/// A device beside the CPUs that a backend can compute on.
struct Device {
  int index = 0;          ///< of those that this process may use
  std::string name;       ///< "NVIDIA H100 80GB HBM3"
  std::string identity;   ///< the same for two processes of a host that share it, no others
  std::string facts;      ///< for people: "compute capability 9.0, 132 multiprocessors, ..."
  bool emulated = false;  ///< computes on the CPU, for tests: no time of it means anything
};

/// A backend's devices that this process may use, or why it has none.
struct DeviceList {
  std::vector<Device> devices;
  std::string why_none;  ///< "no NVIDIA driver"
  std::string remedy;    ///< what to try then
};

/// The refusal of a list without devices.
std::string no_device_text(const std::string& backend, const DeviceList&);

}  // namespace cputrain::compute
