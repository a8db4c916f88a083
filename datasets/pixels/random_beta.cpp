#include "datasets/pixels/random_beta.h"

#include <algorithm>
#include <cmath>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

/// In (0, 1): logarithms of it are finite.
double inside(std::uint32_t word) { return (to_double(word) + 0.5) * 0x1.0p-32; }

/// Jöhnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (1964): u and v to the
/// power 1 / alpha, taken where their sum is at most 1; in logarithms, since they may be tiny.
double johnk(double alpha, const RandomStream& stream, std::uint32_t at) {
  while (true) {
    const auto words = stream.at(at++);
    const double x = std::log(inside(words[0])) / alpha, y = std::log(inside(words[1])) / alpha;
    const double most = std::max(x, y);
    const double sum = most + std::log(std::exp(x - most) + std::exp(y - most));
    if (sum <= 0) return std::exp(x - sum);
  }
}

/// Cheng, "Generating Beta Variates with Nonintegral Shape Parameters" (1978), algorithm BB with
/// both parameters alike, by its exact test alone.
double cheng(double alpha, const RandomStream& stream, std::uint32_t at) {
  const double beta = 1 / std::sqrt(alpha), gamma = alpha + std::sqrt(alpha);
  while (true) {
    const auto words = stream.at(at++);
    const double u = inside(words[0]), z = u * u * inside(words[1]);
    const double v = beta * std::log(u / (1 - u)), w = alpha * std::exp(v);
    const double r = gamma * v - std::log(4.0);
    if (r + 2 * alpha * std::log(2 * alpha / (alpha + w)) >= std::log(z)) return w / (alpha + w);
  }
}

}  // namespace

double beta_number(double alpha, const RandomStream& stream, std::uint32_t first) {
  return alpha > 1 ? cheng(alpha, stream, first) : johnk(alpha, stream, first);
}

}  // namespace cputrain::datasets
