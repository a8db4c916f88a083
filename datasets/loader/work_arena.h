#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace cputrain::datasets {

/// Threads for input work, apart from those that compute: a TBB arena of its own size (plain
/// threads under ThreadSanitizer).
class WorkArena {
 public:
  explicit WorkArena(int threads);
  ~WorkArena();
  WorkArena(const WorkArena&) = delete;
  WorkArena& operator=(const WorkArena&) = delete;

  /// Calls body(i) once for every i in [0, count), on the calling thread and others, and returns
  /// when all are done. What the bodies wrote is seen after it. An exception of a body is thrown
  /// here, and the bodies not yet started are skipped.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

  /// The same on threads that the caller is not one of: it calls `report` five times a second
  /// and once at the end. When report throws, the bodies not yet started are skipped.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body,
                const std::function<void()>& report);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
};

}  // namespace cputrain::datasets
