#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "compute/program.h"

/// Cross-entropy of one image by its definition, with more digits than kernels have.
namespace cputrain::cuda {

struct PlainLoss {
  /// One for each of the row's columns; slopes are d loss / d logit.
  std::vector<long double> probabilities, slopes;
  long double loss = 0;
};

/// One column has a class before it whose logit is 0. The loss is -sum of target *
/// log(probability), written with logits so that small probabilities do not vanish.
inline PlainLoss plain_loss(std::span<const float> row, std::int32_t label, double smoothing,
                            const compute::MixedLabel& mixed = {}) {
  const double own = static_cast<double>(mixed.own), others = static_cast<double>(mixed.others);
  std::vector<long double> logits(row.begin(), row.end());
  if (row.size() == 1) logits.insert(logits.begin(), 0);
  const long double top = *std::ranges::max_element(logits);
  long double sum = 0;
  for (const long double z : logits) sum += std::exp(z - top);
  PlainLoss made;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    const double weight = (c == static_cast<std::size_t>(label) ? own : 0) +
                          (c == static_cast<std::size_t>(mixed.other) ? others : 0);
    const long double target =
        weight * (1 - smoothing) + (own + others) * smoothing / static_cast<double>(logits.size());
    const long double log_probability = logits[c] - top - std::log(sum);
    made.loss -= target * log_probability;
    if (row.size() == 1 && c == 0) continue;
    made.probabilities.push_back(std::exp(log_probability));
    made.slopes.push_back((own + others) * made.probabilities.back() - target);
  }
  return made;
}

}  // namespace cputrain::cuda
