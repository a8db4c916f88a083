#include "comm/watch/storage.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "comm/watch/lookout.h"
#include "core/text.h"
#include "system/output.h"
#include "system/placement/launcher.h"

namespace cputrain::watch {
namespace {

/// A disk that has completed something since so many seconds gets on.
constexpr double kSlow = 1;

/// Not in the first seconds of a disk that has stopped.
bool is_slow(const StorageSilence& silence) {
  return silence.seconds > 10 * kSlow && silence.still < kSlow;
}

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

StorageAccount::StorageAccount(std::vector<Writing> writings) {
  for (Writing& writing : writings) known_.push_back({std::move(writing)});
}

StorageSilence StorageAccount::look(double now) {
  constexpr double kTick = 0.5;  // one that has just begun is not worth a word
  constexpr double kSeen = 10;   // by then whoever waited for a writer has seen its end
  StorageSilence silence;
  for (Known& known : known_) {
    const std::optional<double> cpu = known.writing.meter->cpu_seconds();
    const bool changes = cpu != std::exchange(known.cpu, cpu) || known.writing.meter->is_able();
    const bool works = changes || !cpu;
    const system::DiskWrites* const disk = known.writing.disk.get();
    const std::uint64_t completed = cpu && disk ? disk->completed() : 0;
    if (works) known.since = now;
    const double seconds = now - known.since;
    const bool is_known = disk && (disk->is_one() || seconds < kBusyOthers);
    const bool gets_on = completed != std::exchange(known.completed, completed) && is_known;
    if (works || gets_on) known.still_since = now;
    if (changes || gets_on) moved_ = now;
    if (cpu) at_work_ = now;
    if (seconds < kTick) continue;
    silence.what.push_back(known.writing.what);
    silence.seconds = std::max(silence.seconds, seconds);
    silence.still = std::max(silence.still, now - known.still_since);
  }
  if (at_work_ && now - *at_work_ < kSeen) silence.idle = now - moved_;
  return silence;
}

Farewell StorageAccount::farewell(const StorageSilence& silence, int signals, double now) {
  if (signals == 0) return Farewell::none;
  if (!signalled_) signalled_ = now;
  const double waited = std::min(silence.still, now - *signalled_);
  if (waited >= kStorageGrace) return Farewell::now;
  if (signals > 1 && silence.still >= kStorageGraceAfterTwo) return Farewell::now;
  if (silence.still < kSlow || std::exchange(announced_, true)) return Farewell::none;
  return Farewell::announced;
}

StorageNarrator::StorageNarrator(std::filesystem::path folder, int rank, std::string host,
                                 const Limits& limits)
    : folder_(folder.string()),
      rank_(rank),
      host_(std::move(host)),
      warns_after_(limits.warns_after()) {}

Word StorageNarrator::word_of(const char* event, const std::string& line, double seconds,
                              const comm::Place& place) const {
  return {line,
          {{"event", event},
           {"cause", "storage"},
           {"seconds", seconds},
           {"ranks", {rank_}},
           {"hosts", {host_}},
           {"step", place.step},
           {"phase", comm::name_of(place.phase)},
           {"by", rank_}}};
}

std::optional<Word> StorageNarrator::hear(const StorageSilence& silence, const comm::Place& place,
                                          double now) {
  if (told_ && silence.what.empty()) {
    told_.reset();
    const double seconds = now - began_;
    return word_of("storage_answers",
                   fmt::format("storage answers again after {:.1f} s: {}", seconds, folder_),
                   seconds, place);
  }
  if (silence.seconds < warns_after_ || (told_ && now - *told_ < kSayAgain)) return std::nullopt;
  if (!told_) began_ = now - silence.seconds;
  told_ = now;
  return word_of(
      "storage",
      fmt::format(
          "warning: storage has not answered for {:.0f} s{}: rank {} on {} writes {} in {}; {}",
          silence.seconds, is_slow(silence) ? " (its disk is slow and gets on)" : "", rank_, host_,
          join(silence.what, ", "), folder_,
          silence.keeps_steps ? "steps wait for it, since memory for lines of logs is full"
                              : "steps go on, and what is written later waits"),
      silence.seconds, place);
}

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
  // A watch without a CPU looks late, and what was before its first look proves nothing.
  if (!is_known) {
    busy_ = now;
    return;
  }
  lacks_ = lack_of(shortage, seconds);
  if (lacks_ != Cause::none) busy_ = now;
  // Without its pages a rank finds no message, and a launcher that stands may hold one back.
  if (lacks_ != Cause::launcher && lacks_ != Cause::memory) fair_ += seconds - shortage.cpu;
}

Cause OwnAccount::lack_of(const system::Shortage& shortage, double seconds) const {
  constexpr double kMost = 0.5;  // a share of the time
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
