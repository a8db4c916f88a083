#include "comm/watch/own_account.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "comm/watch/lookout.h"
#include "system/placement/launcher.h"
#include "system/placement/launcher_gone.h"
#include "system/terminal/output.h"
#include "system/usage/cpu_seconds.h"

namespace cputrain::watch {
namespace {

/// Whether a thread has no part in what the rank does: it looks around now and then.
bool looks_around(const system::ThreadState& thread) {
  constexpr std::array<std::string_view, 3> kNames{kThreadName, "output", "signals"};
  return std::ranges::find(kNames, thread.name) != kNames.end();
}

bool stands(const placement::ProcessIdentity& process) {
  if (placement::is_gone(process)) return false;
  const auto threads = system::thread_states(std::to_string(process.id));
  return !threads.empty() && threads.front().state == 'T';
}

}  // namespace

Surroundings real_surroundings() {
  const bool is_rank = placement::launcher_environment().kind != placement::Launcher::Kind::none;
  const auto launcher = is_rank ? placement::find_launcher(::getpid()) : std::nullopt;
  return {.threads = [] { return system::thread_states("self"); },
          .launcher_stands = [launcher] { return launcher && stands(*launcher); }};
}

OwnAccount::OwnAccount(std::shared_ptr<comm::Pulse> pulse, const Limits& limits,
                       Surroundings surroundings)
    : pulse_(std::move(pulse)),
      sample_(limits.sample()),
      surroundings_(std::move(surroundings)),
      working_thread_(::gettid()) {}

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
  // Without its pages a rank finds no message, and a launcher that stands may hold one back.
  if (lacks_ != Cause::launcher && lacks_ != Cause::memory) fair_ += seconds - shortage.cpu;
}

Cause OwnAccount::lack_of(const system::Shortage& shortage, double seconds) const {
  constexpr double kMost = 0.5;  // of the time
  if (surroundings_.launcher_stands()) return Cause::launcher;
  if (shortage.cpu >= kMost * seconds) return Cause::cpu;
  return shortage.pages ? Cause::memory : Cause::none;
}

/// Since the last call.
system::Shortage OwnAccount::shortage(double seconds) {
  std::vector<system::ThreadState> now = surroundings_.threads();
  // A helper that waits for other ranks is no reason why this one has not come.
  const bool all_count = pulse_->waits() || !pulse_->helper_waits();
  std::erase_if(now, [&](const system::ThreadState& state) {
    return state.thread != working_thread_ && (!all_count || looks_around(state));
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
