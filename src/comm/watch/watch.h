#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "comm/communicator.h"
#include "comm/node_map.h"
#include "comm/watch/limits.h"
#include "comm/watch/stall_lines.h"
#include "comm/watch/storage.h"

namespace cputrain::watch {

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

  /// While what it returns lives, `finish` is called before this process ends: it waits for what is
  /// being written, for so many seconds at most. From the watch's thread.
  [[nodiscard]] std::shared_ptr<void> finish_first(
      std::function<void(double seconds)> finish) const;

  /// While what it returns lives, storage that does not answer is reported, and a job that a signal
  /// asks to end does not wait for it longer than kStorageGrace seconds.
  [[nodiscard]] std::shared_ptr<void> look_after(StorageDuty) const;

 private:
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace cputrain::watch
