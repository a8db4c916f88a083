#pragma once

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "system/placement/launcher.h"

/// MPI's start waits for all ranks, for ever and without a word, also for one that ended before it,
/// hangs in it or was never started.
namespace cputrain::mpi {

/// What is known of the ranks of a job that were started on this machine.
struct Arrivals {
  std::set<int> here{};     ///< that have come
  std::set<int> stopped{};  ///< those among them that have not shown themselves lately
};

/// The message for a start that took too long.
std::string missing_text(const placement::Launcher&, const Arrivals&, double seconds);

/// While it lives, MPI is starting. This rank shows itself by a file in the folder that the job's
/// ranks of this machine share, if they have one. After `seconds` the first rank there prints which
/// ranks are missing, and all end with ExitCode::unanswered.
class StartGuard {
 public:
  /// No guard where `seconds` is 0 or the launcher started one process.
  StartGuard(const placement::Launcher&, std::optional<std::filesystem::path> folder,
             double seconds);
  ~StartGuard();
  StartGuard(const StartGuard&) = delete;
  StartGuard& operator=(const StartGuard&) = delete;

 private:
  void run(double seconds);
  void show() const;
  [[noreturn]] void end(double seconds) const;

  placement::Launcher launcher_;
  std::optional<std::filesystem::path> folder_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::jthread thread_;  // last: it uses the others
};

/// The ranks that have shown themselves there.
Arrivals read_arrivals(const std::filesystem::path& folder);

}  // namespace cputrain::mpi
