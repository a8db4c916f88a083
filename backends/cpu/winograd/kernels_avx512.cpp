namespace {
struct Isa {
  static constexpr int kBlock = 16, kRows = 12, kColumns = 8;
};
}  // namespace

#include "backends/cpu/winograd/kernels.inl"

namespace cputrain::cpu::winograd {

const Kernels& avx512_kernels() { return kKernels; }

}  // namespace cputrain::cpu::winograd
