#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace cputrain {

/// Cores of a virtual machine differ in speed by what their neighbours on the host do, often for
/// minutes, and the system leaves a lone thread on one of them. So that a measurement on one thread
/// is of the machine and not of the core that it met, the calling thread visits several cores in
/// turn, for as long as this lives.
class CoreTurns {
 public:
  using Bind = std::function<bool(const std::vector<int>& cpus)>;
  static constexpr std::size_t kMost = 8;

  /// `cpus`: hardware threads that the thread may use, of which at most kMost are visited. Of none
  /// or one it stays where it is.
  CoreTurns(std::vector<int> cpus, Bind bind) : cpus_(std::move(cpus)), bind_(std::move(bind)) {}
  ~CoreTurns() {
    if (count() > 1) bind_(cpus_);
  }
  CoreTurns(const CoreTurns&) = delete;
  CoreTurns& operator=(const CoreTurns&) = delete;

  /// Places to visit, at least one.
  std::size_t count() const { return std::clamp<std::size_t>(cpus_.size(), 1, kMost); }

  /// Goes to place `i` of count(); they are spread over all.
  void visit(std::size_t i) const {
    if (count() > 1) bind_({cpus_[i * cpus_.size() / count()]});
  }

 private:
  std::vector<int> cpus_;
  Bind bind_;
};

}  // namespace cputrain
