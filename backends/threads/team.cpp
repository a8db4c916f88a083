#include "backends/threads/team.h"

#include <string>
#include <string_view>

#include "core/error.h"

namespace cputrain {

void Team::meet(int rank, const Call& call) {
  std::unique_lock lock(mutex_);
  if (stopped_) throw Stopped{};
  calls_[rank] = call;
  if (left_ > 0) {
    fail(ExitCode::internal, std::string("rank ") + std::to_string(rank) + " called " + call.name +
                                 " after another rank had finished (ranks must make the same "
                                 "calls); look for a branch on the rank");
  }
  if (++waiting_ == size_) {
    check_calls();
    shown_ = calls_;
    waiting_ = 0;
    ++meeting_;
    changed_.notify_all();
    return;
  }
  const unsigned long mine = meeting_;
  changed_.wait(lock, [&] { return meeting_ != mine || stopped_; });
  if (meeting_ == mine) throw Stopped{};
}

void Team::check_calls() {
  for (const Call& call : calls_) {
    if (std::string_view(call.name) != calls_[0].name || call.shape != calls_[0].shape) {
      fail(ExitCode::internal, std::string("ranks make different calls: ") + calls_[0].name + " (" +
                                   std::to_string(calls_[0].shape) + ") and " + call.name + " (" +
                                   std::to_string(call.shape) + ")" +
                                   "; look for a branch on the rank");
    }
  }
}

void Team::leave(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  ++left_;
  if (failure) {
    stop(failure);
  } else if (waiting_ > 0) {
    stop(std::make_exception_ptr(
        Error(ExitCode::internal,
              "a rank finished while others wait for it (ranks must make the "
              "same calls); look for a branch on the rank")));
  }
}

void Team::stop(std::exception_ptr failure) {
  if (!failure_) failure_ = failure;
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace cputrain
