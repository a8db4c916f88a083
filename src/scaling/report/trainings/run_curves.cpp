// Curves of runs for the plots of their page.

#include <nlohmann/json.hpp>

#include "core/statistics/statistics.h"
#include "runfiles/metrics.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

/// A number of images in epochs and in seconds of training, where these are known.
struct Progress {
  double images, epochs;
  Value seconds;
};

/// At the beginning and at the ends of epochs, until one is missing.
std::vector<Progress> ends_of(const RunRecord& run) {
  std::vector<Progress> ends{{0, 0, 0}};
  for (const runfiles::EpochLine& e : run.epochs) {
    if (e.epoch != static_cast<int>(ends.size())) break;
    const Progress& before = ends.back();
    ends.push_back({before.images + static_cast<double>(e.images), static_cast<double>(e.epoch),
                    *before.seconds + e.seconds});
  }
  return ends;
}

/// Between the ends of epochs all are in proportion; after the last one seconds are not known.
Progress progress_at(const std::vector<Progress>& ends, double images) {
  const auto end = std::ranges::lower_bound(ends, images, {}, &Progress::images);
  if (end == ends.begin()) return {images, 0, 0};
  if (end != ends.end()) {
    const Progress& before = *(end - 1);
    const double part = (images - before.images) / (end->images - before.images);
    return {images, before.epochs + part * (end->epochs - before.epochs),
            *before.seconds + part * (*end->seconds - *before.seconds)};
  }
  // In an epoch that has not ended: as large as the last one that did.
  const Progress& last = ends.back();
  const double size = ends.size() > 1 ? last.images - (ends.end() - 2)->images : 0;
  return {images, size > 0 ? last.epochs + (images - last.images) / size : last.epochs, {}};
}

/// A point as [images, epochs, seconds, value].
Json point(const Progress& place, double value) {
  return {place.images, rounded(place.epochs),
          place.seconds ? Json(rounded(*place.seconds)) : Json(), rounded(value)};
}

/// A point of accuracy, and behind it what it may be among all images like these (95 %).
Json accuracy_point(const RunRecord& run, const Progress& place, double accuracy) {
  Json json = point(place, accuracy);
  if (const auto images = run.validation_images()) {
    const Interval range = accuracy_interval(accuracy, static_cast<double>(*images));
    json.push_back(rounded(range.low));
    json.push_back(rounded(range.high));
  }
  return json;
}

Json curve_json(const RunRecord& run, const std::string& data, std::size_t most) {
  const std::vector<Progress> ends = ends_of(run);
  const Curve steps = read_curve(run.folder / runfiles::kMetricsName, most);
  Json loss = Json::array(), val_loss = Json::array(), accuracy = Json::array();
  for (std::size_t i = 0; i < steps.images.size(); ++i)
    loss.push_back(point(progress_at(ends, steps.images[i]), steps.loss[i]));
  // Without lines of steps (--log-every 0) the means of epochs are all that there is.
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    const runfiles::EpochLine& epoch = run.epochs[i];
    const auto add = [&end = ends[i + 1]](Json& curve, const Value& value) {
      if (value) curve.push_back(point(end, *value));
    };
    if (steps.images.empty()) add(loss, epoch.train.finite_loss());
    add(val_loss, epoch.val_loss());
    if (const Value value = epoch.val_accuracy())
      accuracy.push_back(accuracy_point(run, ends[i + 1], *value));
  }
  return {{"name", run.name},
          {"data", data},
          {"loss", std::move(loss)},
          {"val_loss", std::move(val_loss)},
          {"accuracy", std::move(accuracy)}};
}

}  // namespace

Json run_curves_json(const RunList& list) {
  const std::size_t count = std::min(list.runs.size(), kMostRunCurves);
  const std::size_t most = std::clamp<std::size_t>(6000 / std::max<std::size_t>(count, 1), 60, 300);
  const std::vector<Choice> choices = choices_of(list.runs);
  const auto data = std::ranges::find(choices, "data", &Choice::head);
  Json curves = Json::array();
  for (const RunRecord& run : std::span(list.runs).first(count))
    curves.push_back(curve_json(run, data->text(run), most));
  return curves;
}

}  // namespace cputrain::report
