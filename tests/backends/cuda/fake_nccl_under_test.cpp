#include "nccl/fake_nccl.h"
#include "tests/backends/cuda/nccl_under_test.h"

const cputrain::nccl::Library& cputrain::cuda::nccl_under_test() {
  nccl::fake::restart();
  return nccl::fake::library();
}
