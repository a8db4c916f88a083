#include "loop/loop_details.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "system/usage/work_meter.h"

namespace cputrain::loop {
namespace {

void average_over_ranks(comm::Communicator& communicator, Budget& b, double& seconds) {
  std::array<double*, kBudgetParts.size() + 1> means{};
  std::ranges::transform(kBudgetParts, means.begin(),
                         [&b](const BudgetPart& part) { return &(b.*part.seconds); });
  means.back() = &seconds;
  comm::sum_numbers(communicator, means);
  for (double* mean : means) *mean /= communicator.size();
}

/// The last to arrive waits least: by the seconds that each rank was there and waited for the
/// others, wherever in a step they meet. No rank's clock is compared with another's.
std::optional<Straggler> find_straggler(comm::Communicator& communicator, double own_wait,
                                        const std::vector<std::string>& hosts) {
  const std::vector<double> waits = comm::gather_values(communicator, own_wait);
  if (waits.size() < 2) return {};
  const auto least = std::ranges::min_element(waits);
  const double others = std::accumulate(waits.begin(), waits.end(), -*least);
  const auto rank = static_cast<std::size_t>(least - waits.begin());
  return Straggler{static_cast<int>(rank), rank < hosts.size() ? hosts[rank] : "",
                   others / static_cast<double>(waits.size() - 1) - *least};
}

}  // namespace

EpochMeter::EpochMeter(const LoopOptions& options, bool simulated) : options_(options) {
  if (simulated) return;
  stolen_ = system::watch_stolen(options.cpus);
  cpu_wait_ = system::watch_cpu_wait();
}

/// A rank that is stopped while it waits keeps the others waiting: it was not there.
void EpochMeter::end_step(double waited) {
  waited_ += std::max(0.0, waited - (stopped() - stopped_before_));
}

void EpochMeter::finish(EpochRecord& record, comm::Communicator& communicator) {
  const auto lost = stolen_ ? stolen_() : std::nullopt;
  const auto waited = cpu_wait_ ? cpu_wait_() : std::nullopt;
  record.budget.other = record.seconds - record.budget.known();
  record.straggler = find_straggler(communicator, waited_, options_.hosts);
  average_over_ranks(communicator, record.budget, record.seconds);
  average_over_ranks(communicator, record.settled.budget, record.settled.seconds);
  comm::sum_numbers(communicator, std::array{&record.from_features});
  record.taken.stolen = comm::largest_of_ranks(communicator, lost);
  record.taken.cpu_wait = comm::largest_of_ranks(communicator, waited);
}

}  // namespace cputrain::loop
