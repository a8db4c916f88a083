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

/// What the way depends on, of one rank.
struct DeviceReport {
  int node = 0;
  std::string device{};   ///< the same for two ranks of a node that share it
  std::string library{};  ///< "NCCL 2.28.9"; empty: none
  std::string lack{}, remedy{};
  std::string varies{};        ///< what makes bits differ from run to run
  bool share_devices = false;  ///< its library sums over two ranks of one device
  bool mpi_reads = false;      ///< MPI takes addresses of devices
};

enum class DevicePath {
  alone,   ///< one rank: nothing travels
  nccl,    ///< the devices by themselves
  direct,  ///< MPI reads the devices' memory
  staged   ///< by way of pinned memory of the host
};

struct DevicePathChoice {
  DevicePath path = DevicePath::staged;
  std::string reason{};  ///< "NCCL 2.28.9, a GPU of its own for every rank"
};
/// For the log: "Gradients of GPUs stay where they are (one rank)".
std::string to_text(const DevicePathChoice&);

/// What was asked for: a way, or nothing.
struct DevicePathWish {
  std::optional<DevicePath> path{};  ///< nccl or staged
  /// Why the devices cannot sum by themselves, whatever they have: how gradients are compressed, an
  /// algorithm that was named. Empty: nothing.
  std::string but{};
  bool compresses = false;  ///< numbers change on their way: MPI sums them as they are
};

/// The first that all ranks can go: alone, nccl, direct, staged. A pure function. Error(usage),
/// with what to try, where the way that was asked for cannot be gone.
DevicePathChoice choose_device_path(std::span<const DeviceReport>, const DevicePathWish&);

/// All ranks' reports, by rank, on every rank. Collective.
std::vector<DeviceReport> gather_reports(comm::Communicator&, const compute::DeviceSumsFacts&,
                                         int node);

}  // namespace cputrain::exchange
