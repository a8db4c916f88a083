#pragma once

#include "backends/nccl/library.h"

namespace cputrain::cuda {

/// That of the process on a GPU (tests/cuda/device), a table of our own on emulated devices.
const nccl::Library& nccl_under_test();

}  // namespace cputrain::cuda
