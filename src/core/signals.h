#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

namespace cputrain {

/// Blocks SIGINT, SIGTERM and SIGHUP for this thread and all it starts: call first thing in main,
/// before any library makes threads. A SignalWatch then receives them. SIGPIPE is ignored.
void block_signals();

/// Receives these signals on a thread of its own, so that work may be done in answer to them
/// (a handler could do next to nothing). Unarmed, each ends the process at once.
///
/// Armed, while there is something to save: the first SIGINT (Ctrl-C) asks for a stop after the
/// running step; the second ends the process with 130. SIGTERM and SIGHUP (a
/// lost terminal) call the function given and end the process with the code it returns: under
/// mpirun SIGTERM comes a second before SIGKILL, which no step would survive.
class SignalWatch {
 public:
  SignalWatch();

  /// Disarms at the end of its life, before what the function uses is gone.
  class Armed {
   public:
    explicit Armed(SignalWatch& watch) : watch_(watch) {}
    ~Armed() { watch_.set({}); }
    Armed(const Armed&) = delete;
    Armed& operator=(const Armed&) = delete;

   private:
    SignalWatch& watch_;
  };
  [[nodiscard]] Armed arm(std::function<int()> on_terminate);
  bool stop_requested() const { return stop_requested_; }

 private:
  void set(std::function<int()> on_terminate);
  void run(const std::stop_token&);
  void interrupted();
  [[noreturn]] void terminated();

  std::mutex mutex_;
  std::function<int()> on_terminate_;  ///< empty: unarmed
  std::atomic<bool> stop_requested_ = false;
  std::jthread thread_;  // last: it uses the other members
};

}  // namespace cputrain
