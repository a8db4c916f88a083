#include "scaling/report/trainings/run_record.h"

#include <algorithm>

#include "core/statistics/median.h"

namespace cputrain::report {
namespace {

/// Those that show the speed; the first finds algorithms.
std::vector<double> rates_of(const std::vector<RunEpoch>& epochs, bool settled_only) {
  std::vector<double> rates;
  for (std::size_t i = settled_only || epochs.size() > 1 ? 1 : 0; i < epochs.size(); ++i) {
    const RunEpoch& epoch = epochs[i];
    if (settled_only && !epoch.settled) continue;
    if (epoch.images > 0 && epoch.seconds > 0) rates.push_back(epoch.images / epoch.seconds);
  }
  return rates;
}

}  // namespace

const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[] = {"finished",    "reached-target", "stopped-early",
                                    "interrupted", "not-a-number",   "running",
                                    "no-end",      "no-figures"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::optional<double> RunRecord::seconds_until(int epoch) const {
  double sum = 0;
  int expected = 1;
  for (const RunEpoch& e : epochs) {
    if (e.epoch != expected++) return std::nullopt;
    sum += e.seconds;
    if (e.epoch == epoch) return sum;
  }
  return std::nullopt;
}

std::optional<BestAccuracy> RunRecord::best() const {
  const RunEpoch* best = nullptr;
  for (const RunEpoch& e : epochs) {
    if (e.val_accuracy && (!best || *e.val_accuracy > *best->val_accuracy)) best = &e;
  }
  if (!best) return std::nullopt;
  return BestAccuracy{best->epoch, *best->val_accuracy, seconds_until(best->epoch)};
}

std::optional<BestAccuracy> RunRecord::first_with(double accuracy) const {
  const auto found = std::ranges::find_if(
      epochs, [&](const RunEpoch& e) { return e.val_accuracy && *e.val_accuracy >= accuracy; });
  if (found == epochs.end()) return std::nullopt;
  return BestAccuracy{found->epoch, *found->val_accuracy, seconds_until(found->epoch)};
}

std::optional<double> RunRecord::val_loss() const {
  for (auto e = epochs.rbegin(); e != epochs.rend(); ++e) {
    if (e->val_loss) return e->val_loss;
  }
  return std::nullopt;
}

std::optional<double> RunRecord::total_seconds() const {
  if (seconds || epochs.empty()) return seconds;
  double sum = 0;
  for (const RunEpoch& e : epochs) sum += e.seconds + e.validation_seconds;
  return sum;
}

std::optional<double> RunRecord::images_per_second() const {
  std::vector<double> rates = rates_of(epochs, true);
  if (rates.empty()) rates = rates_of(epochs, false);
  return rates.empty() ? std::nullopt : std::optional(median(std::move(rates)));
}

RunRecord::Time RunRecord::time() const {
  Time time;
  double stolen = 0, stolen_of = 0, waited = 0, waited_of = 0;
  for (const RunEpoch& e : epochs) {
    if (e.budget) time.budget += *e.budget, time.seconds += e.seconds;
    if (e.stolen) stolen += *e.stolen * e.seconds, stolen_of += e.seconds;
    if (e.cpu_wait) waited += *e.cpu_wait * e.seconds, waited_of += e.seconds;
  }
  if (stolen_of > 0) time.stolen = stolen / stolen_of;
  if (waited_of > 0) time.cpu_wait = waited / waited_of;
  return time;
}

bool RunRecord::includes_trials() const {
  return images_per_second().has_value() && rates_of(epochs, true).empty();
}

}  // namespace cputrain::report
