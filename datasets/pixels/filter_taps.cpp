#include "datasets/pixels/filter_taps.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/casts.h"

namespace cputrain::datasets {
namespace {

// The order of operations is Pillow's: where a place lies between two weights, a rounding decides.

/// A filter around 0, and how far it reaches.
struct ResizeFilter {
  double radius;
  double (*weight)(double place);
};

double box_weight(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

double triangle_weight(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// Keys' cubic convolution.
double cubic_weight(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0;
}

ResizeFilter filter_of(data::Resize way) {
  switch (way) {
    case data::Resize::area:
      return {0.5, box_weight};
    case data::Resize::bicubic:
      return {2, cubic_weight};
    default:
      assert(way == data::Resize::bilinear);
      return {1, triangle_weight};
  }
}

std::int32_t fixed_weight(double weight) {
  return static_cast<std::int32_t>(std::lround(weight * (1 << FilterTaps::kBits)));
}

}  // namespace

int FilterTaps::first_pixel() const { return std::ranges::min(taps, {}, &Tap::begin).begin; }

int FilterTaps::last_pixel() const {
  const auto end = [](const Tap& tap) { return tap.begin + tap.count; };
  return end(std::ranges::max(taps, {}, end)) - 1;
}

FilterTaps filter_taps(const AxisFit& axis, data::Resize way) {
  const ResizeFilter filter = filter_of(way);
  const double scale = to_double(axis.in) / to_double(axis.resized);
  const double stretch = std::max(scale, 1.0), radius = filter.radius * stretch;
  FilterTaps result;
  result.taps.reserve(to_size(axis.count));
  std::vector<double> weights;
  for (int i = 0; i < axis.count; ++i) {
    const double centre = (to_double(axis.first + i) + 0.5) * scale;
    const int begin = std::max(to_int(centre - radius + 0.5), 0);
    const int end = std::min(to_int(centre + radius + 0.5), axis.in);
    weights.clear();
    double sum = 0;
    for (int x = 0; x < end - begin; ++x) {
      weights.push_back(filter.weight((x + begin - centre + 0.5) * (1.0 / stretch)));
      sum += weights.back();
    }
    result.taps.push_back({begin, end - begin, result.weights.size()});
    for (const double weight : weights)
      result.weights.push_back(fixed_weight(sum == 0 ? 0 : weight / sum));
  }
  return result;
}

}  // namespace cputrain::datasets
