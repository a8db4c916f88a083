#include "scaling/cells/lost_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "scaling/cells/explanation.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"

namespace cputrain::cells {
namespace {

/// A way to lose time; `sentence` has a place for the percentage.
struct Way {
  const char* what;
  double least;  ///< share from which on it matters
  const char* sentence;
};

constexpr Way kImages{"images", kWaitLimits,
                      "Starved of images: {:.0f} % of the time was waiting for input; try a packed "
                      "file (data pack), more --io-threads, or fewer changes by --augment."};
constexpr Way kCommunication{
    "communication", kWaitLimits,
    "Starved by communication: {:.0f} % of the time was sums of gradients that backward did not "
    "hide; try a larger --batch, fewer ranks with more --threads each, or --compress bf16."};
constexpr Way kBalance{
    "balance", kWaitLimits,
    "Starved by the slowest rank: {:.0f} % of the time ranks waited for the last of them; try "
    "cores of one kind with nothing else on them, or fewer ranks with more --threads each."};
constexpr Way kHost{
    "host", system::kStolenWorthSaying,
    "Starved of CPU time by the host: {:.0f} % of a rank's CPU time went to other guests of this "
    "virtual machine's host; try again later, or a machine whose CPUs are not shared."};
constexpr Way kCpus{
    "CPUs", system::kWaitWorthSaying,
    "Starved of CPUs: threads of a rank waited {:.0f} % of their time for one; end other work on "
    "the machine, or try fewer ranks or --threads."};

}  // namespace

std::vector<LostTime> lost_time(const Budget& budget, double seconds, std::optional<double> stolen,
                                std::optional<double> cpu_wait) {
  std::vector<LostTime> lost;
  const auto look = [&](const Way& way, double share) {
    if (share < way.least) return;
    lost.push_back({way.what, share, fmt::format(fmt::runtime(way.sentence), 100 * share)});
  };
  if (seconds > 0) {
    look(kImages, budget.input_wait / seconds);
    look(kCommunication, budget.allreduce_exposed / seconds);
    look(kBalance, budget.straggler_wait / seconds);
  }
  look(kHost, stolen.value_or(0));
  look(kCpus, cpu_wait.value_or(0));
  std::ranges::stable_sort(lost, std::greater(), &LostTime::share);
  return lost;
}

std::vector<LostTime> lost_time_of(const Cell& cell) {
  if (!cell.budget || !cell.seconds_per_epoch) return {};
  return lost_time(*cell.budget, *cell.seconds_per_epoch, cell.stolen, cell.cpu_wait);
}

}  // namespace cputrain::cells
