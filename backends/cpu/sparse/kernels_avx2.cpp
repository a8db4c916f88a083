#include "backends/cpu/sparse/isa_of_eight.h"
#include "backends/cpu/sparse/kernels.inl"

namespace cputrain::cpu::sparse {

const Kernels& avx2_kernels() { return kKernels; }

}  // namespace cputrain::cpu::sparse
