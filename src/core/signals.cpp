#include "core/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "core/error.h"

namespace cputrain {
namespace {

constexpr int kEndedBySigterm = 128 + SIGTERM;  // what a shell reports when nothing was saved

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void block_signals() {
  const sigset_t set = watched_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);  // `| head` may close our output; training goes on
}

SignalWatch::SignalWatch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

SignalWatch::Armed SignalWatch::arm(std::function<int()> on_terminate) {
  set(std::move(on_terminate));
  return Armed(*this);
}

void SignalWatch::set(std::function<int()> on_terminate) {
  const std::lock_guard lock(mutex_);
  on_terminate_ = std::move(on_terminate);
}

void SignalWatch::run(const std::stop_token& stop) {
  const sigset_t set = watched_signals();
  const timespec patience{.tv_sec = 0, .tv_nsec = 100'000'000};  // to notice the end of the watch
  while (!stop.stop_requested()) {
    const int signal = sigtimedwait(&set, nullptr, &patience);
    if (signal == SIGTERM || signal == SIGHUP) terminated();
    if (signal == SIGINT) interrupted();
  }
}

void SignalWatch::interrupted() {
  const std::lock_guard lock(mutex_);
  if (!on_terminate_ || stop_requested_.exchange(true)) {
    _exit(static_cast<int>(ExitCode::interrupted));
  }
  std::fputs("\ncputrain: finishing the step; Ctrl-C again ends at once\n", stderr);
}

void SignalWatch::terminated() {
  const std::lock_guard lock(mutex_);
  _exit(on_terminate_ ? on_terminate_() : kEndedBySigterm);
}

}  // namespace cputrain
