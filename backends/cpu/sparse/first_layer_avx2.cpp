#include "backends/cpu/sparse/first_layer_backward.inl"
#include "backends/cpu/sparse/first_layer_forward.inl"

namespace cputrain::cpu::first_layer {
namespace {

// 2 x 6 outputs: 12 of 16 registers.
constexpr Kernels kKernels{forward_rows<8, 8, 3, 1>, backward_rows<8, 8, list_row<8, 8>>};

}  // namespace

const Kernels& avx2_kernels() { return kKernels; }

}  // namespace cputrain::cpu::first_layer
