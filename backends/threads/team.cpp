#include "backends/threads/team.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace cputrain::threads {

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
    wake_all();
    return;
  }
  const unsigned long mine = meeting_;
  changed_[rank].wait(lock, [&] { return meeting_ != mine || stopped_; });
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

void Team::post(const Route& route, std::span<const std::byte> message) {
  const std::lock_guard lock(mutex_);
  messages_[route].emplace_back(message.begin(), message.end());
  changed_[route.to].notify_all();
}

void Team::take(const Route& route, std::span<std::byte> message) {
  std::unique_lock lock(mutex_);
  auto& queue = messages_[route];
  changed_[route.to].wait(lock, [&] { return !queue.empty() || stopped_; });
  if (queue.empty()) throw Stopped{};
  const std::vector<std::byte> next = std::move(queue.front());
  queue.pop_front();
  if (next.size() != message.size()) {
    fail(ExitCode::internal, "rank " + std::to_string(route.to) + " expects " +
                                 std::to_string(message.size()) + " bytes from rank " +
                                 std::to_string(route.from) + ", which sent " +
                                 std::to_string(next.size()) + "; look for a branch on the rank");
  }
  std::ranges::copy(next, message.begin());
}

std::exception_ptr Team::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Team::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  wake_all();
}

void Team::leave(const std::exception_ptr& failure) {
  const std::lock_guard lock(mutex_);
  ++left_;
  if (failure) {
    stop_for(failure);
  } else if (waiting_ > 0) {
    stop_for(std::make_exception_ptr(
        Error(ExitCode::internal,
              "a rank finished while others wait for it (ranks must make the "
              "same calls); look for a branch on the rank")));
  }
}

void Team::wake_all() {
  for (std::condition_variable& changed : changed_) changed.notify_all();
}

void Team::stop_for(const std::exception_ptr& failure) {
  if (!failure_) failure_ = failure;
  stopped_ = true;
  wake_all();
}

}  // namespace cputrain::threads
