#include "comm/watch/own_account.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "system/usage/cpu_seconds.h"

namespace cputrain::watch {

OwnAccount::OwnAccount(std::shared_ptr<comm::Pulse> pulse, const Limits& limits)
    : pulse_(std::move(pulse)), sample_(limits.sample()) {}

Report OwnAccount::look(double now) {
  const std::uint64_t moves = pulse_->moves();
  if (std::exchange(moves_, moves) != moves) since_ = now;
  if (now - sampled_ >= sample_) look_at_cpu(now);
  return {.place = pulse_->place(),
          .waits = pulse_->waits(),
          .still = now - since_,
          .idle = now - std::max(since_, busy_)};
}

void OwnAccount::look_at_cpu(double now) {
  // One that hangs uses next to nothing, for threads that wait for signals and the like. Its
  // working thread then uses nothing, and a little where it lists files of a slow disk.
  constexpr double kBusy = 0.01, kWorks = 0.001;
  // The watch itself has some thousand words a second to answer in a job of so many ranks.
  const double process = system::cpu_seconds() - system::cpu_seconds(::pthread_self());
  const double working = system::cpu_seconds(pulse_->working_thread());
  const double seconds = now - sampled_;
  // A helper that waits for other ranks spins, which is no work.
  const bool all_count = !pulse_->helper_waits();
  const double own = working - working_;
  const bool is_busy = (all_count ? process - process_ : own) >= kBusy * seconds ||
                       (all_count && own >= kWorks * seconds);
  if (is_busy) busy_ = now;
  sampled_ = now;
  process_ = process;
  working_ = working;
}

}  // namespace cputrain::watch
