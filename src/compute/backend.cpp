#include "compute/backend.h"

#include <numeric>

#include "optim/update_math.h"

namespace cputrain::compute {

std::size_t norm_blocks(std::span<const ArenaPart> parts) {
  std::size_t blocks = 0;
  for (const ArenaPart& part : parts) {
    blocks += optim::norm_blocks(part.range.begin, part.range.size());
  }
  return blocks;
}

Pending<std::vector<double>> Backend::sums_of_squares(std::span<const Array> arrays) {
  std::vector<ArenaPart> parts;
  for (const Array& array : arrays) parts.push_back({{0, array.size}, array});
  const Pending<std::vector<double>> norms = block_norms(parts);
  return Pending<std::vector<double>>([parts, norms] {
    const std::vector<double> blocks = norms.wait();
    std::vector<double> sums;
    auto begin = blocks.begin();
    for (const ArenaPart& part : parts) {
      const auto end = begin + static_cast<std::ptrdiff_t>(norm_blocks({&part, 1}));
      sums.push_back(std::accumulate(begin, end, 0.0));
      begin = end;
    }
    return sums;
  });
}

double Backend::sum_of_squares(const Array& array) {
  return sums_of_squares({&array, 1}).wait().front();
}

}  // namespace cputrain::compute
