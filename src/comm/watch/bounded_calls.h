#pragma once

#include <functional>
#include <future>

namespace cputrain::watch {

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
