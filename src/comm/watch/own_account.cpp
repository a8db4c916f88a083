#include "comm/watch/own_account.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "system/terminal/output.h"
#include "system/usage/cpu_seconds.h"

namespace cputrain::watch {
namespace {

/// Whether the parent is stopped by a signal.
bool launcher_stands() {
  const auto threads = system::thread_states(std::to_string(::getppid()));
  return !threads.empty() && threads.front().state == 'T';
}

Cause lack_of(const system::Shortage& shortage, double seconds) {
  constexpr double kMost = 0.5;  // of the time
  if (launcher_stands()) return Cause::launcher;
  if (shortage.cpu >= kMost * seconds) return Cause::cpu;
  return shortage.pages ? Cause::memory : Cause::none;
}

}  // namespace

OwnAccount::OwnAccount(std::shared_ptr<comm::Pulse> pulse, const Limits& limits)
    : pulse_(std::move(pulse)), sample_(limits.sample()) {}

Report OwnAccount::look(double now) {
  const std::uint64_t moves = pulse_->moves();
  if (std::exchange(moves_, moves) != moves) {
    since_ = now;
    fair_ = 0;
    lacks_ = Cause::none;
    threads_.clear();
  }
  if (now - sampled_ >= sample_) look_closer(now);
  const bool unread = system::waits_for_reader();
  if (unread) busy_ = now;
  return {.place = pulse_->place(),
          .waits = !unread && pulse_->waits(),
          .lacks = unread ? Cause::reader : lacks_,
          .still = now - since_,
          .idle = now - std::max(since_, busy_),
          .fair = fair_};
}

void OwnAccount::look_closer(double now) {
  const double seconds = now - std::exchange(sampled_, now);
  lacks_ = Cause::none;
  if (uses_cpu(seconds)) busy_ = now;
  if (since_ == now) return;
  const bool is_known = !threads_.empty();
  const system::Shortage shortage = this->shortage(seconds);
  if (!is_known) return;
  lacks_ = lack_of(shortage, seconds);
  if (lacks_ != Cause::none) busy_ = now;
  if (lacks_ != Cause::launcher) fair_ += seconds - shortage.cpu;
}

/// Since the last call. Short waits of threads that look around now and then are none of it.
system::Shortage OwnAccount::shortage(double seconds) {
  std::vector<system::ThreadState> now = system::thread_states("self");
  // A helper that waits for other ranks is no reason why this one has not come.
  const bool all_count = pulse_->waits() || !pulse_->helper_waits();
  std::erase_if(now, [&](const system::ThreadState& state) {
    return all_count ? state.thread == ::gettid() : state.thread != working_thread_;
  });
  const system::Shortage found = system::shortage_between(threads_, now, seconds);
  threads_ = std::move(now);
  return found;
}

bool OwnAccount::uses_cpu(double seconds) {
  // One that hangs uses next to nothing, for threads that wait for signals and the like. Its
  // working thread then uses nothing, and a little where it lists files of a slow disk.
  constexpr double kBusy = 0.01, kWorks = 0.001;
  // The watch itself has some thousand words a second to answer in a job of so many ranks.
  const double process = system::cpu_seconds() - system::cpu_seconds(::pthread_self());
  const double working = system::cpu_seconds(pulse_->working_thread());
  // A helper that waits for other ranks spins, which is no work.
  const bool all_count = !pulse_->helper_waits();
  const double all = process - std::exchange(process_, process);
  const double own = working - std::exchange(working_, working);
  return (all_count ? all : own) >= kBusy * seconds || (all_count && own >= kWorks * seconds);
}

}  // namespace cputrain::watch
