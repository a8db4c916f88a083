#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "system/clock.h"

namespace cputrain::system {

/// Time in which this process as a whole did not run: it was stopped (SIGSTOP, a debugger), a
/// container or its machine was paused, or others had all CPUs. On its own clock that looks like
/// waiting for others, where it came while this process waited.
///
/// A thread that does little else looks at the clock all the time: longer than kGap without a look
/// were not its own.
class StoppedTime {
 public:
  static constexpr double kGap = 0.3;

  /// From any thread. Seconds since construction.
  double look() {
    const std::lock_guard lock(mutex_);
    const double gap = since_look_.lap();
    if (gap > kGap) stopped_ += gap;
    return stopped_;
  }

 private:
  std::mutex mutex_;
  Stopwatch since_look_;
  double stopped_ = 0;
};

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGUSR1 for this thread and all it starts: call first thing
/// in main, before any library makes threads. A SignalWatch then receives them. SIGPIPE is ignored,
/// and SIGHUP stays so where it is (nohup).
void block_signals();

/// Whether this process was told to ignore it. May be asked between fork and exec.
bool is_ignored(int signal);

/// Receives these signals on a thread of its own, so that work may be done in answer to them
/// (a handler could do next to nothing). Unarmed, each ends the process at once, with 130 or 75.
///
/// Armed, while there is something to save: the first SIGINT (Ctrl-C) or SIGUSR1 (a batch system's
/// word that time is up) asks for a stop after the running step; a SIGINT after it ends the process
/// with 130. SIGTERM and SIGHUP (a lost terminal) ask for one, too, and call the function given at
/// the same time: under mpirun SIGTERM comes a second before SIGKILL, which a long step does not
/// survive, and a checkpoint after a short one may. Batch systems send it to mpirun and ranks
/// alike, so it may come twice. The function has its own thread: while it waits for storage, other
/// signals are answered.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();

  /// SIGINT leaves the function of SIGTERM so many seconds.
  static constexpr double kMostSaving = 2;
  /// Armed while what it returns lives, which disarms before what the function uses is gone.
  [[nodiscard]] std::shared_ptr<void> arm(std::function<void()> on_terminate);
  /// What is saved in answer to a signal has so many seconds, even where what the process works for
  /// has died.
  static constexpr double kMostAlone = 8;
  /// For a program that has nothing to save but children to end: every signal only asks for a stop,
  /// but for a second SIGINT.
  [[nodiscard]] std::shared_ptr<void> arm();
  /// While one of these lives, signals are only remembered, the first of them, and are answered
  /// when the last is gone: for calls that no process may end in. A process that hangs there for
  /// kMostHeld seconds after a signal is ended by it all the same; a hundred ranks that load a
  /// program from a slow file system at once need some tens of them.
  [[nodiscard]] std::shared_ptr<void> hold();
  static constexpr double kMostHeld = 120;

  bool stop_requested() const { return stop_signal_ != 0; }
  /// How many signals have come, those that are not answered yet among them.
  int came() const { return came_; }
  /// What a stopped program returns: 130 after SIGINT, else 75.
  int stop_code() const;

  /// Seconds of its life in which this process did not run, by the thread that waits for signals.
  double stopped_seconds() { return stopped_.look(); }

  /// From now on the process ends with `code` soon after `gone` is true, held or not, unless it
  /// saves in answer to a signal: what it works for has died. Several may be given; an empty
  /// function is none.
  void end_when(std::function<bool()> gone, ExitCode code = ExitCode::stopped);

 private:
  void disarm();
  void run(const std::stop_token&);
  void change_held(int by);
  void remember(int signal);
  // With the mutex locked:
  bool is_held() const;
  void answer(int signal);
  void ask_for_stop(int signal);
  void terminated(int signal);
  void terminate(const std::function<void()>& on_terminate);
  void look_around();

  std::mutex mutex_;
  bool armed_ = false;
  int held_ = 0;
  int remembered_ = 0;        ///< for the thread: a signal that came while held; 0: none
  Stopwatch since_signal_{};  ///< since then
  std::function<void()> on_terminate_;
  bool terminates_ = false;      ///< it is being called
  bool interrupted_ = false;     ///< SIGINT came meanwhile
  Stopwatch since_terminate_{};  ///< since then
  Stopwatch since_stop_{};       ///< since it was asked to stop
  std::condition_variable terminated_;
  std::vector<std::function<void()>> endings_;  ///< each ends the process where it is to
  StoppedTime stopped_;
  std::atomic<int> stop_signal_ = 0;  ///< the first that asked for it; 0: none
  std::atomic<int> came_ = 0;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace cputrain::system
