#pragma once

#include <cstddef>
#include <mutex>
#include <string>

#include "backends/nccl/library.h"

namespace cputrain::nccl {

/// How long calls may take that other ranks take part in, in seconds. They do not wait in NCCL but
/// here, where they can be left.
struct TimeLimits {
  double start = 120;
  double call = 60;
};

/// Ranks whose devices sum together: a communicator of NCCL's, and this rank's place in it.
/// Errors are Error(internal) with NCCL's own words. Behind one, all that is left is abort().
class Group {
 public:
  /// Made by one rank, for all to join by.
  static UniqueId make_id(const Library&);

  /// Collective: returns when all ranks have joined. The thread's device is this rank's.
  Group(const Library&, const UniqueId&, int rank, int ranks, const TimeLimits& = {});
  /// Waits for sums that are under way, for the time limit at most.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Puts the sum over ranks into the stream, in place. All ranks name as many numbers.
  void all_reduce(void* numbers, std::size_t count, DataType, Stream*);

  /// What went wrong with what was put into streams so far; "": nothing. From any thread.
  std::string failure() const;
  /// Sums that are under way end with undefined numbers, as do those of graphs from now on; further
  /// ones are refused. Returns when no graph has any, so it is for a thread that owns none.
  void abort();

 private:
  /// Until a call that may be in progress is done: then what it puts into a stream is there.
  void settle(Result, const char* what, double limit);
  std::string words(Result) const;

  const Calls& calls_;
  TimeLimits limits_;
  Communicator* communicator_ = nullptr;
  mutable std::mutex
      mutex_;              ///< for what follows, and for calls with the communicator but the last
  bool given_up_ = false;  ///< and with it the communicator
};

}  // namespace cputrain::nccl
