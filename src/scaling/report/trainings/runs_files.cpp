// Runs as CSV and as JSON, and their curves for the page.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "runfiles/metrics.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/trainings/curve.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

// clang-format off
const std::vector<CsvColumn> kRunColumns{
    {"run", "/name"}, {"folder"}, {"started"}, {"model"}, {"data"}, {"image_size"}, {"ranks"},
    {"threads"}, {"backend"}, {"precision"}, {"batch"}, {"optimizer"}, {"seed"}, {"machine"},
    {"epochs"}, {"best_val_accuracy", "/best/val_accuracy"}, {"best_epoch", "/best/epoch"},
    {"seconds_to_best", "/best/seconds"}, {"loss"}, {"val_loss"}, {"images_per_second"},
    {"includes_trials"}, {"seconds"}, {"cost"}, {"stolen", "/time/stolen"},
    {"cpu_wait", "/time/cpu_wait"}, {"outcome"}, {"resumed"}, {"checkpoint"}, {"troubles"},
    {"eval_accuracy", "/evaluations/0/accuracy"}, {"eval_images", "/evaluations/0/images"},
    {"eval_data", "/evaluations/0/data"}, {"eval_part", "/evaluations/0/part"}};
// clang-format on

template <class Integer>
Json known_count(const std::optional<Integer>& value) {
  return value ? Json(*value) : Json();
}

Json time_json(const RunRecord::Time& time) {
  return {{"seconds", time.seconds},
          {"budget", time.seconds > 0 ? json_of(time.budget) : Json()},
          {"stolen", known(time.stolen)},
          {"cpu_wait", known(time.cpu_wait)}};
}

Json evaluations_json(const RunRecord& run) {
  Json list = Json::array();
  for (const RunEvaluation& e : run.evaluations) {
    Json range;
    if (e.accuracy) {
      const Interval interval = accuracy_interval(*e.accuracy, e.images);
      range = {interval.low, interval.high};
    }
    list.push_back({{"date", e.date},
                    {"weights", e.weights},
                    {"data", e.data},
                    {"part", e.part},
                    {"tta", e.looks},
                    {"images", e.images},
                    {"accuracy", known(e.accuracy)},
                    {"interval", range},
                    {"loss", known(e.loss)},
                    {"doubt", e.doubt},
                    {"build", e.build},
                    {"command", e.command}});
  }
  return list;
}

Json run_json(const RunRecord& run, const cells::Prices& prices) {
  const auto best = run.best();
  const RunEpoch last = run.epochs.empty() ? RunEpoch{} : run.epochs.back();
  return {{"name", run.name},
          {"folder", run.folder.string()},
          {"started", run.started},
          {"model", run.model},
          {"data", run.data},
          {"image_size", known_count(run.image_size)},
          {"ranks", known_count(run.ranks)},
          {"threads", known_count(run.threads)},
          {"backend", run.backend},
          {"precision", run.precision},
          {"batch", known_count(run.batch)},
          {"optimizer", run.rule},
          {"seed", known_count(run.seed)},
          {"machine", run.machine},
          {"build", run.build},
          {"command", run.command},
          {"epochs", last.epoch},
          {"planned_epochs", known_count(run.planned_epochs)},
          {"best", best ? Json{{"val_accuracy", best->accuracy},
                               {"epoch", best->epoch},
                               {"seconds", known(best->seconds)}}
                        : Json()},
          {"loss", known(last.loss)},
          {"accuracy", known(last.accuracy)},
          {"val_loss", known(run.val_loss())},
          {"images_per_second", known(run.images_per_second())},
          {"includes_trials", run.includes_trials()},
          {"seconds", known(run.total_seconds())},
          {"cost", known(cost_of(run, prices))},
          {"time", time_json(run.time())},
          {"evaluations", evaluations_json(run)},
          {"outcome", outcome_name(run.outcome)},
          {"outcome_text", outcome_text(run)},
          {"outcome_details", outcome_details(run)},
          {"target_accuracy", known(run.target)},
          {"resumed", run.resumed},
          {"checkpoint", known_count(run.checkpoint)},
          {"troubles", run.troubles}};
}

/// Where a number of images lies in epochs and in seconds of training. Between the ends of epochs
/// both are in proportion; after the last end the seconds are not known.
class Progress {
 public:
  explicit Progress(const RunRecord& run) {
    double seconds = 0;
    int expected = 1;
    for (const RunEpoch& e : run.epochs) {
      if (e.epoch != expected++) break;
      seconds += e.seconds;
      ends_.push_back({ends_.back().images + e.images, static_cast<double>(e.epoch), seconds});
    }
  }

  struct Place {
    double images, epochs;
    Value seconds;
  };

  Place at(double images) const {
    const auto end = std::ranges::lower_bound(ends_, images, {}, &Place::images);
    if (end == ends_.begin()) return {images, 0, 0};
    if (end != ends_.end()) {
      const Place& before = *(end - 1);
      const double part = (images - before.images) / (end->images - before.images);
      return {images, before.epochs + part * (end->epochs - before.epochs),
              *before.seconds + part * (*end->seconds - *before.seconds)};
    }
    // In an epoch that has not ended: as large as the last one that did.
    const Place& last = ends_.back();
    const double size = ends_.size() > 1 ? last.images - (ends_.end() - 2)->images : 0;
    return {images, size > 0 ? last.epochs + (images - last.images) / size : last.epochs, {}};
  }

  const std::vector<Place>& ends() const { return ends_; }

 private:
  std::vector<Place> ends_{{0, 0, 0}};
};

/// A point as [images, epochs, seconds, value].
Json point(const Progress::Place& place, double value) {
  return {place.images, rounded(place.epochs),
          place.seconds ? Json(rounded(*place.seconds)) : Json(), rounded(value)};
}

Json curve_json(const RunRecord& run, const std::string& data, std::size_t most) {
  const Progress progress(run);
  const Curve steps = read_curve(run.folder / runfiles::kMetricsName, most);
  Json loss = Json::array(), val_loss = Json::array(), accuracy = Json::array();
  for (std::size_t i = 0; i < steps.images.size(); ++i)
    loss.push_back(point(progress.at(steps.images[i]), steps.loss[i]));
  // Without lines of steps (--log-every 0) the means of epochs are all that there is.
  for (std::size_t i = 0; i + 1 < progress.ends().size(); ++i) {
    const RunEpoch& epoch = run.epochs[i];
    const Progress::Place& end = progress.ends()[i + 1];
    if (steps.images.empty() && epoch.loss) loss.push_back(point(end, *epoch.loss));
    if (epoch.val_loss) val_loss.push_back(point(end, *epoch.val_loss));
    if (epoch.val_accuracy) accuracy.push_back(point(end, *epoch.val_accuracy));
  }
  return {{"name", run.name},
          {"data", data},
          {"loss", std::move(loss)},
          {"val_loss", std::move(val_loss)},
          {"accuracy", std::move(accuracy)}};
}

}  // namespace

std::string runs_csv(const RunList& list) {
  Csv csv(kRunColumns);
  for (const RunRecord& run : list.runs) csv.add(run_json(run, list.prices));
  return csv.text();
}

Json runs_json(const RunList& list) {
  Json runs = Json::array(), same = Json::array();
  for (const RunRecord& run : list.runs) runs.push_back(run_json(run, list.prices));
  for (const auto& [repeats, what] : repeats_of(list.runs)) {
    Json names = Json::array();
    for (const RunRecord* run : repeats) names.push_back(run->name);
    same.push_back({{"configuration", what}, {"runs", std::move(names)}});
  }
  return {{"version", 1},
          {"headline", runs_headline(list)},
          {"runs", std::move(runs)},
          {"same_configuration", std::move(same)},
          {"left_out", list.left_out},
          {"sweeps", list.sweeps}};
}

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
