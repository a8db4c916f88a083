#include "train/penalty.h"

namespace cputrain::train {

double l2_penalty(compute::Backend& backend, const compute::ParameterLayout& layout,
                  const Array& weights) {
  double penalty = 0;
  for (const compute::Parameter& parameter : layout.parameters) {
    if (parameter.l2 == 0) continue;
    const Array values = weights.slice(parameter.range.begin, parameter.range.end);
    penalty += static_cast<double>(parameter.l2) * backend.sum_of_squares(values);
  }
  return penalty;
}

}  // namespace cputrain::train
