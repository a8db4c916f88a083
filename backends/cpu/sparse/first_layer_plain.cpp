#include "backends/cpu/sparse/first_layer_backward.inl"
#include "backends/cpu/sparse/first_layer_forward.inl"

namespace cputrain::first_layer {
namespace {

// 2 x 2 outputs, each in two registers of four numbers.
constexpr Kernels kKernels{forward_rows<8, 1, 1>, backward_rows<8, list_row<8>>};

}  // namespace

const Kernels& plain_kernels() { return kKernels; }

}  // namespace cputrain::first_layer
