#include "loop/penalty.h"

#include <numeric>
#include <vector>

namespace cputrain::loop {

compute::Pending<double> l2_penalty(compute::Backend& backend,
                                    const compute::ParameterLayout& layout, const Array& weights) {
  std::vector<Array> kernels;
  std::vector<double> factors;
  for (const compute::Parameter& parameter : layout.parameters) {
    if (parameter.l2 == 0 || !parameter.learnt) continue;
    kernels.push_back(weights.slice(parameter.range.begin, parameter.range.end));
    factors.push_back(static_cast<double>(parameter.l2));
  }
  if (kernels.empty()) return 0.0;
  return compute::Pending<double>([factors, sums = backend.sums_of_squares(kernels)] {
    return std::inner_product(factors.begin(), factors.end(), sums.wait().begin(), 0.0);
  });
}

}  // namespace cputrain::loop
