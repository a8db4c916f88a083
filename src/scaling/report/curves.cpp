#include "scaling/report/curves.h"

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

/// The metrics of the repeat whose time is nearest to the cell's median; nothing where there is no
/// such file.
std::optional<std::filesystem::path> metrics_of(const ScalingCell& place) {
  const cells::Cell& cell = place.cell;
  if (cell.runs.empty()) return std::nullopt;
  std::size_t chosen = 0;
  if (cell.runs.size() == cell.repeats.size() && cell.seconds_per_epoch) {
    const auto nearest = std::ranges::min_element(cell.repeats, {}, [&](double seconds) {
      return std::fabs(seconds - *cell.seconds_per_epoch);
    });
    chosen = static_cast<std::size_t>(nearest - cell.repeats.begin());
  }
  std::error_code error;
  auto file = std::filesystem::canonical(place.folder / cell.runs[chosen] / "metrics.jsonl", error);
  return error ? std::nullopt : std::optional(std::move(file));
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

Curves curves_of(const ScalingTable& table) {
  Curves curves;
  // A hostile table may name one large file in all of its cells.
  std::map<std::filesystem::path, Curve> files;
  table.for_each([&](const Series& series, const ScalingCell& cell) {
    const auto file = metrics_of(cell);
    if (!file) return;
    if (curves.shown.size() == kMostCurves) {
      ++curves.left_out;
      return;
    }
    if (!files.contains(*file)) files.emplace(*file, read_curve(*file));
    const Curve& curve = files.at(*file);
    if (!curve.images.empty()) curves.shown.push_back({&series, &cell, curve});
  });
  return curves;
}

}  // namespace cputrain::report
