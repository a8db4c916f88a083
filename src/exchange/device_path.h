#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/allreduce_choice.h"
#include "comm/communicator.h"
#include "compute/device_sums.h"

/// How gradients get from device to device: decided by all ranks alike, of what each reports.
namespace cputrain::exchange {

using comm::DevicePath;

struct DevicePathChoice {
  DevicePath path = DevicePath::staged;
  std::string reason{};  ///< "NCCL 2.28.9, a GPU of its own for every rank"
};
/// For the log: "Gradients of GPUs stay where they are (one rank)".
std::string to_text(const DevicePathChoice&);

/// The first that all ranks can go, by what each reports: alone, nccl, direct, staged. `asked`:
/// nccl or staged, where one was asked for. `but`: why the devices cannot sum by themselves,
/// whatever they have (how gradients are compressed, an algorithm that was named), or empty.
/// `compresses`: numbers change on their way, and MPI sums them as they are. A pure function.
/// Error(usage), with what to try, where the way that was asked for cannot be gone.
DevicePathChoice choose_device_path(std::span<const compute::DeviceSumsFacts>,
                                    std::optional<DevicePath> asked, const std::string& but = "",
                                    bool compresses = false);

/// All ranks' facts, by rank, on every rank. Collective.
std::vector<compute::DeviceSumsFacts> gather_facts(comm::Communicator&,
                                                   const compute::DeviceSumsFacts&, int node);

}  // namespace cputrain::exchange
