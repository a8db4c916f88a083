#include "scaling/report/trainings/curve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/json_fields.h"
#include "system/bounded_file.h"
#include "training/run/lost_seconds.h"

namespace cputrain::report {
namespace {

std::optional<double> number(const nlohmann::json& line, const char* key) {
  constexpr double kAny = std::numeric_limits<double>::max();
  return number_in(line, key, -kAny, kAny);
}

/// A step line. Loss and accuracy may be missing: its images count all the same.
struct StepPoint {
  double step, images;
  std::optional<double> seen, loss, accuracy, seconds;
};

/// The steps of one training, ascending. Where the file goes back, the later lines hold.
std::vector<StepPoint> steps_of(const std::filesystem::path& metrics) {
  std::vector<StepPoint> steps;
  try {
    system::BoundedLines lines(metrics, training::kMetricsLimits);
    while (const auto text = lines.next()) {
      const auto line = nlohmann::json::parse(*text, nullptr, false);
      if (!line.is_object() || line.value("type", nlohmann::json()) != "step") continue;
      const auto step = number(line, "step"), images = number(line, "images");
      if (!step || !images || *step < 1 || *images < 0) continue;
      steps.erase(std::ranges::lower_bound(steps, *step, {}, &StepPoint::step), steps.end());
      steps.push_back({*step, *images, number(line, "images_seen"), number(line, "loss"),
                       number(line, "accuracy"), number(line, "seconds")});
    }
  } catch (const std::runtime_error&) {  // what came before it is a curve all the same
  }
  return steps;
}

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
  const std::vector<StepPoint> steps = steps_of(metrics);
  const bool timed =
      std::ranges::all_of(steps, [](const StepPoint& p) { return p.seconds.value_or(-1) >= 0; });
  double step = 0, seconds = 0, seen = 0;
  for (const StepPoint& p : steps) {
    seen = p.seen.value_or(seen + p.images * (p.step - step));
    seconds += p.seconds.value_or(0) * (p.step - step);
    step = p.step;
    if (!p.loss || !p.accuracy) continue;
    // A hostile file may count backwards: points go from left to right all the same.
    curve.images.push_back(curve.images.empty() ? seen : std::max(seen, curve.images.back()));
    curve.loss.push_back(*p.loss);
    curve.accuracy.push_back(*p.accuracy);
    if (timed) curve.seconds.push_back(seconds);
  }
  for (auto* values : {&curve.images, &curve.loss, &curve.accuracy, &curve.seconds}) {
    thin(*values, most);
  }
  return curve;
}

}  // namespace cputrain::report
