#include "sweep/calm_runs.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "core/calm_rounds.h"

namespace cputrain {
namespace {

/// Asked of the cell and not of each training: else a quicker one might pass where a slower fails.
bool can_tell(const Runs& runs) {
  constexpr double kLeastSeconds = 2;
  return std::ranges::any_of(
      runs, [](const auto& run) { return run.second.watched_seconds >= kLeastSeconds; });
}

}  // namespace

bool is_disturbed(const RunFigures& run) { return run.stolen.value_or(0) > CalmRounds::kCalm; }

int runs_to_make(const Runs& runs, int wanted, int most) {
  if (!can_tell(runs)) return wanted;
  const auto disturbed =
      std::ranges::count_if(runs, [](const auto& run) { return is_disturbed(run.second); });
  return std::min(wanted + static_cast<int>(disturbed), most);
}

Runs calmest(const Runs& runs, int wanted) {
  std::vector<std::pair<int, RunFigures>> by_loss(runs.begin(), runs.end());
  if (can_tell(runs)) {
    std::ranges::stable_sort(by_loss, {},
                             [](const auto& run) { return run.second.stolen.value_or(0); });
  }
  const auto count = std::min(by_loss.size(), static_cast<std::size_t>(wanted));
  return {by_loss.begin(), std::next(by_loss.begin(), static_cast<std::ptrdiff_t>(count))};
}

}  // namespace cputrain
