#include "system/signals.h"

#include <pthread.h>
#include <signal.h>

#include <csignal>
#include <system_error>
#include <utility>

#include "system/output.h"
#include "system/print.h"

namespace cputrain::system {
namespace {

/// Ends the wait of a SignalWatch's thread, to which alone it is sent. Where it is not blocked, as
/// in that thread before its first wait, it is ignored.
constexpr int kWake = SIGURG;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  // Blocked, it would come to a SignalWatch even where it is ignored.
  if (!is_ignored(SIGHUP)) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);
  return set;
}

}  // namespace

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void block_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // `| head` may close our output; training goes on
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` is an error like others
}

SignalWatch::SignalWatch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

SignalWatch::~SignalWatch() {
  thread_.request_stop();
  ::pthread_kill(thread_.native_handle(), kWake);
}

std::shared_ptr<void> SignalWatch::arm(std::function<void()> on_terminate) {
  {
    const std::lock_guard lock(mutex_);
    armed_ = true;
    on_terminate_ = std::move(on_terminate);
  }
  return {this, [](SignalWatch* watch) { watch->disarm(); }};
}

std::shared_ptr<void> SignalWatch::arm() { return arm({}); }

void SignalWatch::disarm() {
  std::unique_lock lock(mutex_);
  terminated_.wait(lock, [this] { return !terminates_; });
  armed_ = false;
  on_terminate_ = {};
}

int SignalWatch::stop_code() const {
  return static_cast<int>(stop_signal_ == SIGINT ? ExitCode::interrupted : ExitCode::stopped);
}

void SignalWatch::end_when(std::function<bool()> gone, ExitCode code) {
  if (!gone) return;
  const std::lock_guard lock(mutex_);
  endings_.emplace_back([gone = std::move(gone), code] {
    if (gone()) end_at_once(static_cast<int>(code));
  });
}

void SignalWatch::run(const std::stop_token& stop) {
  ::pthread_setname_np(::pthread_self(), "signals");  // for ps, strace and comm/watch
  sigset_t set = watched_signals();
  sigaddset(&set, kWake);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};  // to look around
  while (!stop.stop_requested()) {
    const int signal = sigtimedwait(&set, nullptr, &patience);
    stopped_.look();
    if (signal > 0 && signal != kWake) {
      ++came_;
      remember(signal);
    }
    // One lock over question and answer: no hold may begin in between.
    const std::lock_guard lock(mutex_);
    if (!is_held()) {
      if (const int came = std::exchange(remembered_, 0)) answer(came);
    }
    look_around();  // held or not: a launcher that is gone needs no answer
  }
}

void SignalWatch::remember(int signal) {
  if (remembered_ != 0) return;
  remembered_ = signal;
  since_signal_ = {};
}

std::shared_ptr<void> SignalWatch::hold() {
  change_held(1);
  return {this, [](SignalWatch* watch) { watch->change_held(-1); }};
}

void SignalWatch::change_held(int by) {
  const std::lock_guard lock(mutex_);
  held_ += by;
}

bool SignalWatch::is_held() const {
  const bool hangs = remembered_ != 0 && since_signal_.seconds() >= kMostHeld;
  return held_ > 0 && !hangs;
}

void SignalWatch::answer(int signal) {
  if (signal == SIGTERM || signal == SIGHUP) return terminated(signal);
  ask_for_stop(signal);
}

void SignalWatch::ask_for_stop(int signal) {
  if (!armed_)
    end_at_once(static_cast<int>(signal == SIGINT ? ExitCode::interrupted : ExitCode::stopped));
  hurry_output();
  if (terminates_ && signal == SIGINT) {
    interrupted_ = true;
    return;
  }
  int none = 0;
  const bool first = stop_signal_.compare_exchange_strong(none, signal);
  if (first) since_stop_ = {};
  if (!first && signal == SIGINT) end_at_once(static_cast<int>(ExitCode::interrupted));
  if (!first || signal != SIGINT || !on_terminate_) return;
  take_unended_line();  // the bar, perhaps with the ^C behind it, stays as it is
  put(stderr, "\ncputrain: finishing the step; Ctrl-C again ends at once\n", Worth::told);
}

void SignalWatch::terminated(int signal) {
  if (terminates_) return;  // it came before
  const bool has_work = armed_ && on_terminate_ && stop_signal_ == 0;
  if (!has_work) return ask_for_stop(signal);  // unarmed there is nothing to save: the process ends
  terminates_ = true;
  since_terminate_ = {};
  stop_signal_ = signal;
  since_stop_ = {};
  hurry_output();
  try {
    std::thread([this, call = on_terminate_] {
      ::pthread_setname_np(::pthread_self(), "saving");  // for ps and strace
      terminate(call);
    }).detach();                        // disarm() waits for it
  } catch (const std::system_error&) {  // no more threads
    on_terminate_();
    terminates_ = false;
  }
}

void SignalWatch::terminate(const std::function<void()>& on_terminate) {
  on_terminate();
  const std::lock_guard lock(mutex_);
  terminates_ = false;
  if (interrupted_) ask_for_stop(SIGINT);
  // Under the lock: the waiting thread may end this object.
  terminated_.notify_all();
}

void SignalWatch::look_around() {
  if (terminates_ && interrupted_ && since_terminate_.seconds() >= kMostSaving) {
    end_at_once(static_cast<int>(ExitCode::interrupted));
  }
  // Ctrl-C reaches all of `mpirun ... | tee`: mpirun dies of it while its ranks save.
  const bool saves = armed_ && stop_signal_ != 0 && since_stop_.seconds() < kMostAlone;
  if (saves) return;
  for (const auto& end_where_gone : endings_) end_where_gone();
}

}  // namespace cputrain::system
