#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace cputrain::threads {

/// What one rank brings to a collective call.
struct Call {
  const char* name = "";   ///< must be the same on all ranks,
  std::size_t shape = 0;   ///< and so must this: a size or a root
  void* data = nullptr;    ///< memory of this rank that the others read or write
  std::size_t length = 0;  ///< the data's; may differ from rank to rank
};

/// Between two ranks on one channel.
struct Route {
  int channel, from, to;
  auto operator<=>(const Route&) const = default;
};

/// Thrown on ranks that had to stop because another one failed.
struct Stopped {};

/// What the ranks of one run share: a barrier at which they show each other their memory.
class Team {
 public:
  explicit Team(int size) : size_(size), calls_(size), shown_(size), changed_(size) {}

  int size() const { return size_; }

  /// Waits for all ranks; then calls() shows what each of them brought, until this rank's next
  /// meet().
  /// Throws Stopped when a rank failed, Error(internal) when ranks make different calls.
  void meet(int rank, const Call& call);
  const std::vector<Call>& calls() const { return shown_; }

  /// Leaves a copy of the message for the receiver.
  void post(const Route&, std::span<const std::byte> message);
  /// Waits for the next message; Error(internal) where it has another length, Stopped as meet().
  void take(const Route&, std::span<std::byte> message);

  /// Ends the waiting of all ranks with Stopped.
  void stop();

  /// The rank will make no more calls. With an exception all others stop, too.
  void leave(const std::exception_ptr& failure);
  std::exception_ptr failure() const;  ///< the first

 private:
  void stop_for(const std::exception_ptr& failure);  // with mutex_ held
  void wake_all();                                   // with mutex_ held
  void check_calls();                                // with mutex_ held, all ranks waiting

  const int size_;
  std::vector<Call> calls_;
  std::vector<Call> shown_;  // calls_ of the last meeting: read while others come to the next one
  std::map<Route, std::deque<std::vector<std::byte>>> messages_;
  mutable std::mutex mutex_;
  std::vector<std::condition_variable> changed_;  // by rank: a message wakes its receiver alone
  int waiting_ = 0;
  int left_ = 0;
  unsigned long meeting_ = 0;  // counts completed meetings
  bool stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace cputrain::threads
