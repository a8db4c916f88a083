namespace {
struct Isa {
  static constexpr int kBlock = 8, kRows = 6, kColumns = 4;
};
}  // namespace

#include "backends/cpu/winograd/kernels.inl"

namespace cputrain::cpu::winograd {

const Kernels& avx2_kernels() { return kKernels; }

}  // namespace cputrain::cpu::winograd
