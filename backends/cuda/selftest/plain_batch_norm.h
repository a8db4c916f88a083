#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

/// Batch normalization as plain loops, in double. Maps have their channels without padding.
namespace cputrain::cuda {

/// A layer's parameters and what it reads, forward and backward.
struct BatchNormNumbers {
  std::vector<float> gamma, beta;  ///< by channel
  std::vector<float> src, diff_dst;
  std::vector<float> other{};   ///< that is added; empty: none
  std::vector<float> before{};  ///< in the gradient of src; empty: nothing
};

struct PlainBatchNorm {
  std::vector<double> mean, variance;  ///< the biased one
  std::vector<double> dst{};
  std::vector<double> cut{};  ///< diff_dst, zero where a ReLU made zero
  std::vector<double> diff_gamma{}, diff_beta{}, diff_src{};
};

/// Calls visit(number, channel) for each number of the map.
template <class Visit>
void each_number(std::size_t count, std::size_t channels, const Visit& visit) {
  for (std::size_t i = 0; i < count; ++i) visit(i, i % channels);
}

/// `learns`: by the map's own statistics; else mean and variance are those of `moving`.
inline PlainBatchNorm plain_batch_norm(const BatchNormNumbers& n, double epsilon, bool relu,
                                       const PlainBatchNorm* moving = nullptr) {
  const std::size_t channels = n.gamma.size(), count = n.src.size();
  const auto positions = static_cast<double>(count / channels);
  PlainBatchNorm made;
  for (auto* sums : {&made.mean, &made.variance, &made.diff_gamma, &made.diff_beta}) {
    sums->resize(channels);
  }
  each_number(count, channels, [&](std::size_t i, std::size_t c) {
    made.mean[c] += static_cast<double>(n.src[i]) / positions;
  });
  each_number(count, channels, [&](std::size_t i, std::size_t c) {
    const double apart = static_cast<double>(n.src[i]) - made.mean[c];
    made.variance[c] += apart * apart / positions;
  });
  if (moving) {
    made.mean = moving->mean;
    made.variance = moving->variance;
  }
  const auto inverse = [&](std::size_t c) { return 1 / std::sqrt(made.variance[c] + epsilon); };
  const auto normal = [&](std::size_t i, std::size_t c) {
    return (static_cast<double>(n.src[i]) - made.mean[c]) * inverse(c);
  };
  each_number(count, channels, [&](std::size_t i, std::size_t c) {
    const double value = normal(i, c) * static_cast<double>(n.gamma[c]) +
                         static_cast<double>(n.beta[c]) +
                         (n.other.empty() ? 0 : static_cast<double>(n.other[i]));
    const bool dead = relu && !(value > 0);
    made.dst.push_back(dead ? 0 : value);
    made.cut.push_back(dead ? 0 : static_cast<double>(n.diff_dst[i]));
    made.diff_beta[c] += made.cut[i];
    made.diff_gamma[c] += made.cut[i] * normal(i, c);
  });
  each_number(count, channels, [&](std::size_t i, std::size_t c) {
    const double along =
        moving ? 0 : (made.diff_beta[c] + normal(i, c) * made.diff_gamma[c]) / positions;
    const double before = n.before.empty() ? 0 : static_cast<double>(n.before[i]);
    made.diff_src.push_back(before +
                            static_cast<double>(n.gamma[c]) * inverse(c) * (made.cut[i] - along));
  });
  return made;
}

}  // namespace cputrain::cuda
