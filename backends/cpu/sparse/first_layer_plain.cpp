#include "backends/cpu/sparse/first_layer_backward.inl"
#include "backends/cpu/sparse/first_layer_forward.inl"

namespace cputrain::cpu::first_layer {
namespace {

// 2 x 2 outputs of a block in two registers: 8 of 16.
constexpr Kernels kKernels{forward_rows<8, 4, 1, 2>, backward_rows<8, 4, list_row<8, 4>>};

}  // namespace

const Kernels& plain_kernels() { return kKernels; }

}  // namespace cputrain::cpu::first_layer
