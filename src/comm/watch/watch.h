#pragma once

#include <filesystem>
#include <functional>
#include <future>
#include <memory>

#include "comm/communicator.h"
#include "comm/node.h"
#include "comm/watch/findings.h"
#include "comm/watch/storage.h"

namespace cputrain::watch {

/// The same ranks, whose calls note in their pulse when they wait for each other. What was made
/// from it must be destroyed before it.
std::unique_ptr<comm::Communicator> watched(std::unique_ptr<comm::Communicator>);

/// Looks at what this rank does and receives reports of others, on its own thread, which makes no
/// calls of MPI and has one UDP socket. Prints which ranks are waited for, and ends the process
/// with ExitCode::unanswered after the time-out. The README has what it promises.
class Watch {
 public:
  /// Watches nothing.
  Watch();
  /// Collective. The ranks are `watched` ones and may end before it.
  Watch(comm::Communicator&, const comm::NodeMap&, const Limits&);
  /// The others need not wait for this rank any more.
  ~Watch();
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;

  /// From now on stalls are also written into this folder's stalls.jsonl, where it is there.
  void write_into(const std::filesystem::path& folder) const;

  /// Saves what it can and says what a resume goes on from, in so many seconds. `folder` is that of
  /// write_into(). It may be on storage that hangs: then it is left alone.
  using Finish = std::function<void(double seconds, const std::filesystem::path& folder)>;
  /// While what it returns lives, `finish` is called, from any thread, before rank 0 ends the
  /// process for a stall, or this rank where it cannot reach rank 0.
  [[nodiscard]] std::shared_ptr<void> finish_first(Finish finish) const;

  /// While what it returns lives, storage that does not answer is reported, and a job that a signal
  /// asks to end does not wait for it longer than kStorageGrace seconds.
  [[nodiscard]] std::shared_ptr<void> look_after(StorageDuty) const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

/// Makes calls that may never return, as a write into a pipe without a reader or to a file system
/// that hangs: each on its own thread, which is not waited for long.
class BoundedCalls {
 public:
  /// Returns after so many seconds at most. A call is left out where one before it has not
  /// returned by then. It must own what it uses.
  void make(const std::function<void()>& call, double seconds);

 private:
  std::future<void> last_{};
};

}  // namespace cputrain::watch
