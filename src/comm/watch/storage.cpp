#include "comm/watch/storage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/text.h"

namespace cputrain::watch {
namespace {

/// A disk that has completed something since so many seconds gets on.
constexpr double kSlow = 1;

/// Not in the first seconds of a disk that has stopped.
bool is_slow(const StorageSilence& silence) {
  return silence.seconds > 10 * kSlow && silence.still < kSlow;
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

Farewell StorageFarewell::hear(const StorageSilence& silence, int signals, double now) {
  if (signals == 0) return Farewell::none;
  if (!first_) first_ = now;
  const double waited = std::min(silence.still, now - *first_);
  if (waited >= kStorageGrace) return Farewell::now;
  if (signals > 1 && silence.still >= kStorageGraceAfterTwo) return Farewell::now;
  if (silence.still < kSlow || std::exchange(announced_, true)) return Farewell::none;
  return Farewell::announced;
}

}  // namespace cputrain::watch
