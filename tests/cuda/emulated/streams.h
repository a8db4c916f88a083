#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "backends/cuda/device/device.h"
#include "emulated/counts.h"
#include "emulated/work_queue.h"

/// The state behind backends/cuda/device/device.h, for the files that implement it.
namespace cputrain::emulated {

/// Puts work that more than one stream has part in behind this, each time anew.
using PutTogether = std::function<WorkPointer(const std::vector<WorkPointer>& after)>;

/// A piece of captured work, with the numbers of those before it.
struct CapturedWork {
  std::function<void()> run;
  std::vector<std::size_t> after;
  cuda::EventHandle* recorded = nullptr;  ///< anew by each launch, where this is the place of one
  PutTogether together = {};              ///< instead of `run`
};

/// Work that is being captured. A stream that waits for an event of it takes part.
struct Capture {
  std::thread::id thread;
  cuda::StreamHandle* origin = nullptr;
  std::vector<CapturedWork> work;
  std::vector<cuda::StreamHandle*> streams;  ///< that take part
  std::string broken;                        ///< why nothing will come of it
};

}  // namespace cputrain::emulated

namespace cputrain::cuda {

struct StreamHandle {
  int device = 0;
  emulated::WorkPointer last;  ///< what it holds ends with this
  std::shared_ptr<emulated::Capture> capture;
  std::vector<std::size_t> captured;  ///< what comes next is after these
};

struct EventHandle {
  emulated::WorkPointer reached;
  std::shared_ptr<emulated::Capture> capture;  ///< it was recorded in
  std::vector<std::size_t> captured;
  std::chrono::steady_clock::time_point recorded{};  ///< the call
  bool timed = false;
};

struct GraphHandle {
  std::vector<emulated::CapturedWork> work;
  emulated::WorkPointer last_launch;
};

}  // namespace cputrain::cuda

namespace cputrain::emulated {

/// Everything of the process. Its mutex is held by whoever touches anything, and while work runs.
struct Devices {
  std::mutex mutex;
  std::condition_variable_any changed;  ///< somebody has put work, or has done some
  WorkQueue queue;
  std::string failed;  ///< with what
  std::vector<std::weak_ptr<Capture>> captures;
  std::vector<std::pair<const std::byte*, std::size_t>> pinned;
  Counts counts;

  /// Throws what failed before.
  void check() const;
  /// Throws if the calling thread is capturing.
  void check_may_wait(const char* what) const;
  /// Runs work; what it throws is what fails from now on.
  void run_until(const WorkPointer&);
  void run_all();
  /// Behind what the stream holds, or into its capture.
  void put(cuda::Stream, std::function<void()>);
  void put_together(cuda::Stream, PutTogether);
  bool is_pinned(const void* p, std::size_t bytes) const;
};
Devices& devices();
/// Nobody else touches them meanwhile. Throws what failed before.
inline std::unique_lock<std::mutex> held(Devices& d) {
  std::unique_lock lock(d.mutex);
  d.check();
  return lock;
}

}  // namespace cputrain::emulated
