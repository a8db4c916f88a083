#include "report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "cells/run_figures.h"
#include "core/json_fields.h"
#include "system/bounded_file.h"

namespace cputrain::report {
namespace {

std::optional<double> number(const nlohmann::json& line, const char* key) {
  constexpr double kAny = std::numeric_limits<double>::max();
  return number_in(line, key, -kAny, kAny);
}

/// A step line. Loss and accuracy may be missing: its images count all the same.
struct StepPoint {
  double step, epoch, images;
  std::optional<double> seen, loss, accuracy, seconds;
};

struct EpochImages {
  double steps, images;
};

/// The lines of one training by what they are of.
struct RunLines {
  std::vector<StepPoint> steps;          ///< ascending
  std::map<double, EpochImages> epochs;  ///< by their numbers

  void add(const nlohmann::json& line);

 private:
  void add_step(const nlohmann::json& line);
  void add_epoch(const nlohmann::json& line);
};

void RunLines::add(const nlohmann::json& line) {
  if (!line.is_object()) return;
  const auto type = line.value("type", nlohmann::json());
  if (type == "step") add_step(line);
  if (type == "epoch") add_epoch(line);
}

void RunLines::add_step(const nlohmann::json& line) {
  const auto step = number(line, "step"), images = number(line, "images");
  if (!step || !images || *step < 1 || *images < 0) return;
  const double epoch = number(line, "epoch").value_or(1);
  const auto later = std::ranges::lower_bound(steps, *step, {}, &StepPoint::step);
  if (later != steps.end()) {  // the file goes back
    steps.erase(later, steps.end());
    epochs.erase(epochs.lower_bound(epoch), epochs.end());
  }
  steps.push_back({*step, epoch, *images, number(line, "images_seen"), number(line, "loss"),
                   number(line, "accuracy"), number(line, "seconds")});
}

void RunLines::add_epoch(const nlohmann::json& line) {
  const auto epoch = number(line, "epoch"), count = number(line, "steps"),
             images = number(line, "images");
  if (!epoch || !count || !images || *count < 0 || *images < 0) return;
  epochs.erase(epochs.lower_bound(*epoch), epochs.end());
  epochs.emplace(*epoch, EpochImages{*count, *images});
}

/// Goes through the lines step by step and says how many images were seen after each.
class ImageCounter {
 public:
  explicit ImageCounter(const RunLines& lines) : lines_(lines), next_(lines.epochs.begin()) {
    for (const StepPoint& p : lines.steps) {
      largest_[p.epoch] = std::max(largest_[p.epoch], p.images);
    }
  }

  double after(const StepPoint& p) {
    pass_epochs_before(p);
    if (p.seen) {
      images_ = *p.seen;
    } else if (ends_its_epoch(p)) {
      images_ = epoch_images_ + next_->second.images;
    } else {
      images_ += (p.step - step_ - 1) * largest_[p.epoch] + p.images;
    }
    step_ = p.step;
    return images_;
  }

 private:
  /// What whole epochs before the step had, also those of which no step is there.
  void pass_epochs_before(const StepPoint& p) {
    for (; next_ != lines_.epochs.end() && next_->first < p.epoch; ++next_) {
      known_ = known_ && next_->first == ++epochs_;
      epoch_steps_ += next_->second.steps;
      epoch_images_ += next_->second.images;
    }
    known_ = known_ && p.epoch == epochs_ + 1;
    if (!known_ || step_ >= epoch_steps_) return;
    step_ = epoch_steps_;
    images_ = epoch_images_;
  }

  bool ends_its_epoch(const StepPoint& p) const {
    return known_ && next_ != lines_.epochs.end() && next_->first == p.epoch &&
           p.step == epoch_steps_ + next_->second.steps;
  }

  const RunLines& lines_;
  std::map<double, double> largest_;  ///< images of a step, by epoch
  std::map<double, EpochImages>::const_iterator next_;
  bool known_ = true;  ///< all epochs until here have a line
  double epochs_ = 0, epoch_steps_ = 0, epoch_images_ = 0;
  double step_ = 0, images_ = 0;  ///< until the last point
};

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
  RunLines run;
  try {
    system::BoundedLines lines(metrics, cells::kMetricsLimits);
    while (const auto line = lines.next()) run.add(nlohmann::json::parse(*line, nullptr, false));
  } catch (const std::runtime_error&) {  // what came before it is a curve all the same
  }
  Curve curve;
  ImageCounter counter(run);
  const bool timed = std::ranges::all_of(
      run.steps, [](const StepPoint& p) { return p.seconds.value_or(-1) >= 0; });
  double step = 0, seconds = 0;
  for (const StepPoint& p : run.steps) {
    const double seen = counter.after(p);
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

namespace {

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
