#pragma once

#include <memory>

#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/memory.h"
#include "compute/executor/target.h"

namespace cputrain::cuda {

/// The device that a program runs on; borrowed from the backend.
struct ProgramDevice {
  int device;
  int multiprocessors;
  Numbers numbers;  ///< how activations are stored; the memory knows how copies of weights are
  ComputeStream& stream;
  DeviceMemory& memory;
  bool captures;  ///< passes become CUDA graphs
  bool measures;  ///< training passes find tiles of products
};

/// Operators that put kernels into the device's one stream. Errors as make_ops().
std::unique_ptr<compute::Target> make_target(const ProgramDevice&);

}  // namespace cputrain::cuda
