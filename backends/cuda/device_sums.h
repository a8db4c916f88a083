#pragma once

#include "backends/cuda/memory.h"
#include "backends/nccl/group.h"
#include "compute/device_sums.h"

namespace cputrain::cuda {

/// Sums by NCCL, on a stream of their own beside the backend's.
class NcclSums final : public compute::DeviceSums {
 public:
  /// Borrows all of it. `identity`: the device's.
  NcclSums(int device, const std::string& identity, ComputeStream&, const nccl::Library&,
           const nccl::TimeLimits& = {});

  const compute::DeviceSumsFacts& facts() const override { return facts_; }
  std::unique_ptr<compute::DeviceSum> make(comm::Communicator&, bool narrow,
                                           std::size_t most) override;

 private:
  int device_;
  ComputeStream& compute_;
  const nccl::Library& library_;
  nccl::TimeLimits limits_;
  compute::DeviceSumsFacts facts_;
};

}  // namespace cputrain::cuda
