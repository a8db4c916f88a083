#include "scaling/report/evaluation/accuracy_interval.h"

#include <cmath>

namespace cputrain::report {

Interval accuracy_interval(double accuracy, double images) {
  constexpr double kNormal = 1.959964;  // its quantile of 0.975
  const double z = kNormal * kNormal / images;
  const double middle = (accuracy + z / 2) / (1 + z);
  const double half = std::sqrt(z * (accuracy * (1 - accuracy) + z / 4)) / (1 + z);
  return {middle - half, middle + half};
}

std::optional<Interval> validation_interval(const Series& series, const cells::Cell& cell) {
  const auto images = static_cast<double>(series.about.validation_images);
  if (!cell.val_accuracy || images < 1) return std::nullopt;
  return accuracy_interval(*cell.val_accuracy, images);
}

}  // namespace cputrain::report
