// Plans of matrix products for prediction_test.py: reads lines "rows columns depth parts inside
// numbers multiprocessors", inside as 0 or 1, the numbers as 0 (exact), 1 (tf32) or 2 (bf16), and
// writes "tile tiles slices bias_parts", a tile as 128x32, for each.
#include "backends/cuda/kernels/products/convolution_plan.h"

#include <iostream>

int main() {
  cputrain::cuda::GemmExtent extent;
  int numbers = 0, multiprocessors = 0;
  while (std::cin >> extent.rows >> extent.columns >> extent.depth >> extent.parts >>
         extent.depth_inside >> numbers >> multiprocessors) {
    using namespace cputrain::cuda;
    const GemmPlan plan = plan_gemm(extent, static_cast<Numbers>(numbers), multiprocessors);
    std::cout << plan.tile.rows << 'x' << plan.tile.columns << ' '
              << plan.row_tiles * plan.column_tiles * extent.parts << ' ' << plan.slices << ' '
              << most_bias_parts(plan) << '\n';
  }
}
