#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "emulated/settings.h"

namespace cputrain::emulated {

/// A piece of work that begins once those before it are done.
struct Work {
  std::function<void()> run;  ///< none: it only stands for a place
  std::uint64_t number = 0;   ///< of its putting
  int missing = 0;            ///< of those before it
  bool done = false;
  std::chrono::steady_clock::time_point ended{};  ///< when it was done
  std::vector<std::shared_ptr<Work>> followers;
};
using WorkPointer = std::shared_ptr<Work>;

/// Work that waits until somebody waits for it, and is then done in some order that is legal.
class WorkQueue {
 public:
  /// What is null or done in `after` holds nobody up.
  WorkPointer put(std::function<void()> run, const std::vector<WorkPointer>& after);
  /// Work that so many have to come to before it begins.
  WorkPointer put_meeting(std::function<void()> run, int parties);
  /// One of them comes, behind these.
  void arrive(const WorkPointer& meeting, const std::vector<WorkPointer>& after);
  /// Until this is done, in the order of settings(), or nothing can begin before somebody comes to
  /// a meeting: then false. Throws what the work throws; then all that is left is dropped. Throws
  /// Fault if none can begin.
  bool run_until(const WorkPointer& target);
  /// All that can be done.
  void run_all();
  bool is_empty() const { return left_ == 0; }
  void drop_all();
  void seed(unsigned seed) { random_.seed(seed); }

 private:
  WorkPointer take();
  void run_one();
  /// That nothing can begin is nobody's fault as long as somebody may come to a meeting.
  bool can_go_on() const;

  std::vector<WorkPointer> ready_;
  std::vector<std::weak_ptr<Work>> waiting_;  ///< may hold some that are ready or done
  std::uint64_t next_number_ = 0;
  std::size_t left_ = 0;
  int missing_parties_ = 0;  ///< who have not come to their meetings
  std::minstd_rand random_;
};

}  // namespace cputrain::emulated
