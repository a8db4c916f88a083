#include "tests/backends/cuda/nccl_under_test.h"

const cputrain::nccl::Library& cputrain::cuda::nccl_under_test() { return nccl::library(); }
