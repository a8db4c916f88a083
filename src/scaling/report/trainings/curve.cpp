#include "scaling/report/trainings/curve.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "runfiles/metrics.h"

namespace cputrain::report {
namespace {

void thin(std::vector<double>& values, std::size_t most) {
  const std::size_t n = values.size();
  if (n <= most) return;
  for (std::size_t i = 0; i < most; ++i) values[i] = values[i * (n - 1) / (most - 1)];
  values.resize(most);
}

}  // namespace

double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(std::max(std::fabs(value), 1e-12))) - 4);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit) : value;
}

Curve read_curve(const std::filesystem::path& metrics, std::size_t most) {
  Curve curve;
  const auto steps = runfiles::read_metrics(metrics, runfiles::Steps::read).steps;
  const bool timed = std::ranges::all_of(
      steps, [](const runfiles::StepLine& line) { return line.seconds.has_value(); });
  std::uint64_t step = 0;
  double seconds = 0, seen = 0;
  for (const runfiles::StepLine& line : steps) {
    const auto more = static_cast<double>(line.step - step);
    seen = line.images_seen ? static_cast<double>(*line.images_seen)
                            : seen + static_cast<double>(line.images) * more;
    seconds += line.seconds.value_or(0) * more;
    step = line.step;
    const std::optional<double> loss = line.figures.finite_loss();
    if (!loss || !line.figures.accuracy) continue;
    // A hostile file may count backwards: points go from left to right all the same.
    curve.images.push_back(curve.images.empty() ? seen : std::max(seen, curve.images.back()));
    curve.loss.push_back(*loss);
    curve.accuracy.push_back(*line.figures.accuracy);
    if (timed) curve.seconds.push_back(seconds);
  }
  for (auto* values : {&curve.images, &curve.loss, &curve.accuracy, &curve.seconds}) {
    thin(*values, most);
  }
  return curve;
}

}  // namespace cputrain::report
