#pragma once

#include <string>

#include "comm/node_arrays.h"
#include "training/request/training_flags.h"
#include "training/session/services.h"

namespace cputrain::training {

/// Plans the threads of the whole job and binds this rank's where the plan does, before it starts
/// any: threads inherit the mask of the one that starts them, and memory lies near the thread that
/// writes it first. The same plan on every rank; collective.
placement::JobPlacement place_ranks(comm::Communicator&, const comm::NodeMap&,
                                    const placement::Machine&, const TrainingFlags&,
                                    const Services&);

/// Where a rank computes.
struct DeviceChoice {
  int device = 0;          ///< compute::Device::index
  int ranks = 1;           ///< on this rank's node that compute on it
  bool emulated = false;   ///< no time of this job means anything
  std::string line{};      ///< all ranks' devices, for the log; empty where they are CPUs
  int all = 0;             ///< devices of all ranks together
  std::string name{};      ///< all devices'; with " and " between where there are several kinds
  std::string at_first{};  ///< compute::Device::at_first of this rank's

  bool chosen() const { return !line.empty(); }
};

/// The ranks of a node take its devices in turn; where each is shown one of its own, that one.
/// Nothing to choose, and no message, for a backend that computes on the CPUs. Error(usage) with
/// the reason on all ranks alike where one of them has no device. Collective.
DeviceChoice choose_device(comm::Communicator&, const comm::NodeMap&, const Services&,
                           const std::string& backend);

}  // namespace cputrain::training
