#include "backends/cpu/sparse/isa_of_eight.h"
#include "backends/cpu/sparse/kernels.inl"

namespace cputrain::sparse {

const Kernels& plain_kernels() { return kKernels; }

const Kernels& kernels_for(int block) {
  if (block == 16) return avx512_kernels();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return avx2 ? avx2_kernels() : plain_kernels();
}

}  // namespace cputrain::sparse
