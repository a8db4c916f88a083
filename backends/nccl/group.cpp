#include "backends/nccl/group.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::nccl {
namespace {

using Clock = std::chrono::steady_clock;

std::string words_of(const Calls& calls, Result result, Communicator* communicator) {
  const char* const what = calls.get_error_string(result);
  const char* const more = calls.get_last_error(communicator);
  std::string text = what ? what : fmt::format("error {}", to_int(result));
  if (more && *more) text += fmt::format(" ({})", more);
  return printable(text);
}

}  // namespace

UniqueId Group::make_id(const Library& library) {
  UniqueId id{};
  const Result result = library.calls->get_unique_id(&id);
  if (result != Result::success) {
    fail(ExitCode::internal, fmt::format("NCCL cannot begin: {}; NCCL_DEBUG=INFO has more",
                                         words_of(*library.calls, result, nullptr)));
  }
  return id;
}

Group::Group(const Library& library, const UniqueId& id, int rank, int ranks,
             const TimeLimits& limits)
    : calls_(*library.calls), limits_(limits) {
  Config config;
  try {
    settle(calls_.comm_init_rank_config(&communicator_, ranks, id, rank, &config),
           "joining the other ranks", limits_.start);
  } catch (...) {
    if (communicator_) static_cast<void>(calls_.comm_abort(communicator_));
    throw;
  }
}

/// A graph that still has sums would keep NCCL waiting, so programs are gone by now. During an
/// error the other ranks may never come.
Group::~Group() {
  if (!communicator_ || given_up_) return;
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(calls_.comm_abort(communicator_));
    return;
  }
  try {
    settle(calls_.comm_finalize(communicator_), "its end", limits_.call);
    static_cast<void>(calls_.comm_destroy(communicator_));
  } catch (const Error&) {  // calls that needed the sums have thrown
    static_cast<void>(calls_.comm_abort(communicator_));
  }
}

void Group::all_reduce(void* numbers, std::size_t count, DataType type, Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (given_up_) fail(ExitCode::internal, "NCCL: a sum of gradients behind one that was given up");
  settle(calls_.all_reduce(numbers, numbers, count, type, Operation::sum, communicator_, stream),
         "a sum of gradients", limits_.call);
}

std::string Group::failure() const {
  const std::lock_guard lock(mutex_);
  if (given_up_) return "given up";
  Result result = Result::success;
  const Result asked = calls_.comm_get_async_error(communicator_, &result);
  const Result worst = asked != Result::success ? asked : result;
  return worst == Result::success || worst == Result::in_progress ? "" : words(worst);
}

/// NCCL returns when no graph has sums any more. The thread that destroys the graphs must not wait
/// for that meanwhile, so the mutex is free by then; no call begins any more.
void Group::abort() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(given_up_, true)) return;
  }
  static_cast<void>(calls_.comm_abort(communicator_));
}

/// Since 2.23 a thread of NCCL's own puts each sum into its stream, also while this thread captures
/// that. It is there once NCCL is no longer in progress, and not before.
void Group::settle(Result result, const char* what, double limit) {
  const auto end = Clock::now() + std::chrono::duration<double>(limit);
  while (result == Result::in_progress && communicator_) {
    if (Clock::now() > end) {
      fail(ExitCode::internal, fmt::format("NCCL: {} took over {:g} s; some rank has not come, or "
                                           "the network between GPUs does not work "
                                           "(NCCL_DEBUG=INFO has more; --allreduce staged does "
                                           "without NCCL)",
                                           what, limit));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    Result now = Result::success;
    const Result asked = calls_.comm_get_async_error(communicator_, &now);
    result = asked == Result::success ? now : asked;
  }
  if (result == Result::success) return;
  fail(ExitCode::internal,
       fmt::format("NCCL: {} failed: {} (NCCL_DEBUG=INFO has more; --allreduce staged does "
                   "without NCCL)",
                   what, words(result)));
}

std::string Group::words(Result result) const { return words_of(calls_, result, communicator_); }

}  // namespace cputrain::nccl
