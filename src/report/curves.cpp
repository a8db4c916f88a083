#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/bounded_file.h"
#include "sweep/run_figures.h"

namespace cputrain {
namespace {

std::optional<double> number(const nlohmann::json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Adds a step's point. Images seen count whole steps of its size, as lines may be missing between.
void add_line(Curve& curve, const std::string& text) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object() || line.value("type", nlohmann::json()) != "step") return;
  const auto step = number(line, "step"), images = number(line, "images");
  const auto loss = number(line, "loss"), accuracy = number(line, "accuracy");
  if (!step || !images || !loss || !accuracy || *step < 1 || *images < 0) return;
  curve.images.push_back(*step * *images);
  curve.loss.push_back(*loss);
  curve.accuracy.push_back(*accuracy);
}

void thin(std::vector<double>& values, std::size_t most) {
  const std::size_t n = values.size();
  if (n <= most) return;
  for (std::size_t i = 0; i < most; ++i) values[i] = values[i * (n - 1) / (most - 1)];
  values.resize(most);
}

}  // namespace

Curve read_curve(const std::filesystem::path& metrics, std::size_t most) {
  Curve curve;
  try {
    BoundedLines lines(metrics, kMetricsLimits);
    while (const auto line = lines.next()) add_line(curve, *line);
  } catch (const std::runtime_error&) {  // what came before it is a curve all the same
  }
  // The last step of an epoch may be short: points go from left to right all the same.
  for (std::size_t i = 1; i < curve.images.size(); ++i) {
    curve.images[i] = std::max(curve.images[i], curve.images[i - 1]);
  }
  for (auto* values : {&curve.images, &curve.loss, &curve.accuracy}) thin(*values, most);
  return curve;
}

namespace {

/// The metrics of the repeat whose time is nearest to the cell's median; nothing where there is no
/// such file.
std::optional<std::filesystem::path> metrics_of(const ScalingCell& place) {
  const Cell& cell = place.cell;
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

}  // namespace cputrain
