#include "backends/cpu/sparse/isa_of_eight.h"
#include "backends/cpu/sparse/kernels.inl"

namespace cputrain::cpu::sparse {

const Kernels& plain_kernels() { return kKernels; }

const Kernels& kernels_for(InstructionSet set) {
  if (set == InstructionSet::avx512) return avx512_kernels();
  return set == InstructionSet::avx2 ? avx2_kernels() : plain_kernels();
}

}  // namespace cputrain::cpu::sparse
