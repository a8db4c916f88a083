// Plans of matrix products for prediction_test.py: reads lines "rows columns depth parts element
// multiprocessors" and writes "tile tiles slices" for each.
#include "backends/cuda/kernels/gemm_plan.h"

#include <iostream>

int main() {
  cputrain::cuda::GemmExtent extent;
  std::size_t element = 0;
  int multiprocessors = 0;
  while (std::cin >> extent.rows >> extent.columns >> extent.depth >> extent.parts >> element >>
         multiprocessors) {
    const auto plan = cputrain::cuda::plan_gemm(extent, element, multiprocessors);
    std::cout << static_cast<int>(plan.tile) << ' '
              << plan.row_tiles * plan.column_tiles * extent.parts << ' ' << plan.slices << '\n';
  }
}
