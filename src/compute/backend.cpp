#include "compute/backend.h"

#include <numeric>

#include "optim/update_math.h"

namespace cputrain::compute {

double Backend::sum_of_squares(const Array& array) {
  std::vector<double> blocks(optim::norm_blocks(0, array.size));
  block_norms(array, 0, blocks);
  return std::accumulate(blocks.begin(), blocks.end(), 0.0);
}

}  // namespace cputrain::compute
