#include "checkpoint/writer_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace cputrain::checkpoint {
namespace {

/// Threads that train go first: a step of all ranks lasts as long as that of the slowest. Linux has
/// a nice value per thread, and takes the priority of reading and writing from it, too. Not the
/// lowest: a process that is asked to end waits for this thread, beside others that spin. Under
/// `nice` the threads that train are far behind themselves, and this one is a little more so.
void go_behind_others() {
  constexpr int kNice = 10, kBehind = 2, kLowest = 19;
  const auto thread = static_cast<id_t>(::gettid());
  const int now = ::getpriority(PRIO_PROCESS, thread);
  const int nice = std::min(kLowest, std::max(kNice, now + kBehind));
  static_cast<void>(::setpriority(PRIO_PROCESS, thread, nice));
  static_cast<void>(::pthread_setname_np(::pthread_self(), "checkpoints"));  // for ps and strace
}

}  // namespace

WriterThread::WriterThread(std::function<void()> on_thread_start)
    : queue_([begin = std::move(on_thread_start)] {
        go_behind_others();
        if (begin) begin();
      }) {
  queue_.post([] {});  // so that the thread begins now, bound as its maker is
  queue_.finish();
  if (!queue_.has_thread()) throw std::system_error(EAGAIN, std::generic_category());
}

WriterState WriterThread::wait(const std::function<void()>& gets_on) {
  for (std::optional<double> before; !queue_.wait_for(1);) {
    const std::optional<double> now = meter().cpu_seconds();
    if (gets_on && now != std::exchange(before, now)) gets_on();
  }
  return state_;
}

void WriterThread::start(std::function<void()> write) {
  queue_.post([this, write = std::move(write)] {
    state_.failure.reset();
    try {
      write();
      ++state_.written;
    } catch (const std::exception& error) {  // Error, and no memory
      state_.failure = error.what();
    }
    state_.cpu_seconds = system::cpu_seconds(::pthread_self());
  });
}

}  // namespace cputrain::checkpoint
