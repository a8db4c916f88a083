#pragma once

#include "backends/cpu/sparse/first_layer.h"

/// The loops of the first layer, one copy for each instruction set; their arguments are those of
/// forward() and backward_weights().
namespace cputrain::cpu::first_layer {

struct Kernels {
  void (*forward)(const Shape&, const std::uint8_t* image, const float* weights, const float* bias,
                  int begin, int end, float* scratch, float* dst, std::uint8_t* winners);
  void (*backward_weights)(const Shape&, const std::uint8_t* image, const Outputs&, int begin,
                           int end, float* scratch, float* sums);
};

// One file each, compiled for its instruction set.
const Kernels& avx512_kernels();
const Kernels& avx2_kernels();
const Kernels& plain_kernels();

}  // namespace cputrain::cpu::first_layer
