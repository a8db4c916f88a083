#pragma once

#include <vector>

#include "scaling/bench/kernel_figures.h"

namespace cputrain::bench {

/// The same number of images at once with the zeros that the weights give, and with none.
struct KernelPair {
  KernelFigures given, no_zeros;
};

/// A line a layer and direction, the worst case beside the given weights.
void print_kernels(const KernelPair&);

/// A line a number of images: all layers together.
void print_kernel_sums(const std::vector<KernelPair>&);

}  // namespace cputrain::bench
