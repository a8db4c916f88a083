namespace {
struct Isa {
  static constexpr int kBlock = 8, kRows = 2, kColumns = 2;
};
}  // namespace

#include "backends/cpu/winograd/kernels.inl"

namespace cputrain::cpu::winograd {

const Kernels& plain_kernels() { return kKernels; }

const Kernels& kernels_for(InstructionSet set) {
  if (set == InstructionSet::avx512) return avx512_kernels();
  return set == InstructionSet::avx2 ? avx2_kernels() : plain_kernels();
}

}  // namespace cputrain::cpu::winograd
