#include "model/init.h"

#include <cmath>

#include "core/random.h"

namespace cputrain::model {
namespace {

/// fan_in + fan_out of an HWIO or (in, out) kernel.
double fans(const ParameterSpec& kernel) {
  const auto& e = kernel.extents;
  const double area = e.size() == 4 ? static_cast<double>(e[0]) * e[1] : 1.0;
  return area * (static_cast<double>(e[e.size() - 2]) + e[e.size() - 1]);
}

}  // namespace

std::vector<double> initial_values(const Graph::Node& node, const ParameterSpec& parameter,
                                   std::uint64_t seed) {
  std::vector<double> values(parameter.size(), parameter.fill);
  if (parameter.extents.size() < 2) return values;  // a bias, or batch norm's vectors
  const double limit = std::sqrt(6.0 / fans(parameter));
  const RandomStream stream(seed, Purpose::weights, static_cast<std::uint32_t>(node.origin));
  for (std::size_t group = 0; group * 4 < values.size(); ++group) {
    const auto words = stream.at(static_cast<std::uint32_t>(group));
    for (std::size_t i = 0; i < 4 && group * 4 + i < values.size(); ++i) {
      const double u = unit_float(words[i]);
      values[group * 4 + i] = static_cast<float>((2 * u - 1) * limit);
    }
  }
  return values;
}

}  // namespace cputrain::model
