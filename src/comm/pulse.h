#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace cputrain::comm {

/// Where in its work a rank is. Those of a step follow each other in this order.
enum class Phase : std::uint8_t {
  start,    ///< ranks find each other, and are placed
  data,     ///< images are found
  compile,  ///< memory and the program are made
  decode,
  load,  ///< weights to begin with
  input,
  forward,
  backward,
  exchange,
  update,
  agree,    ///< sums of a step, wishes to stop
  compare,  ///< replicas
  validate,
  checkpoint,
  save,  ///< results
  end    ///< MPI ends
};

/// What they are called in messages, in stalls.jsonl and by CPUTRAIN_FAULT of the tests.
inline constexpr std::array<std::string_view, 16> kPhaseNames{
    "start",    "data",   "compile", "decode",  "load",     "input",      "forward", "backward",
    "exchange", "update", "agree",   "compare", "validate", "checkpoint", "save",    "end"};

constexpr std::string_view name_of(Phase phase) {
  return kPhaseNames[static_cast<std::size_t>(phase)];
}

/// What a rank shows of itself. All make the same collective calls in the same order, so a rank
/// that has made fewer of them is behind.
struct Place {
  std::uint64_t calls = 0;  ///< collective ones of all ranks
  std::uint64_t step = 0;   ///< from 1; 0 before the first
  Phase phase = Phase::start;
  auto operator<=>(const Place&) const = default;
};

/// A rank's own account of what it does, for a thread that watches it (src/comm/watch). Its working
/// thread, which made it, stores where it is; a call that waits for other ranks stores that, too.
/// Relaxed stores, which cost next to nothing.
class Pulse {
 public:
  void at(Phase phase, std::uint64_t step) {
    place_.store(step << 4 | static_cast<std::uint64_t>(phase), std::memory_order_relaxed);
    moved();
  }
  /// The step stays.
  void at(Phase phase) { at(phase, place_.load(std::memory_order_relaxed) >> 4); }
  /// Something was done that others may wait for. From any thread.
  void moved() { moves_.fetch_add(1, std::memory_order_relaxed); }

  Place place() const {
    const std::uint64_t place = place_.load(std::memory_order_relaxed);
    return {calls_.load(std::memory_order_relaxed), place >> 4, static_cast<Phase>(place & 15)};
  }
  std::uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  /// Whether the rank is in a call that ends when other ranks have come. A thread that sums
  /// gradients meanwhile may be in one while the rank computes.
  bool waits() const {
    const Phase phase = place().phase;
    const bool is_behind_others = phase >= Phase::exchange && phase <= Phase::agree;
    return own_.load(std::memory_order_relaxed) > 0 || (is_behind_others && helper_waits());
  }
  bool helper_waits() const { return helpers_.load(std::memory_order_relaxed) > 0; }
  pthread_t working_thread() const { return working_; }

  /// While it lives, the calling thread waits for other ranks.
  class Meeting {
   public:
    static constexpr bool kOfAll = true;
    explicit Meeting(Pulse& pulse, bool of_all = false)
        : pulse_(pulse),
          inside_(::pthread_equal(::pthread_self(), pulse.working_) ? pulse.own_ : pulse.helpers_) {
      if (of_all) pulse.calls_.fetch_add(1, std::memory_order_relaxed);
      inside_.fetch_add(1, std::memory_order_relaxed);
      pulse_.moved();
    }
    ~Meeting() {
      inside_.fetch_sub(1, std::memory_order_relaxed);
      pulse_.moved();
    }
    Meeting(const Meeting&) = delete;
    Meeting& operator=(const Meeting&) = delete;

   private:
    Pulse& pulse_;
    std::atomic<int>& inside_;
  };

 private:
  const pthread_t working_ = ::pthread_self();
  std::atomic<std::uint64_t> place_ = 0, moves_ = 0, calls_ = 0;
  std::atomic<int> own_ = 0, helpers_ = 0;
};

}  // namespace cputrain::comm
