#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace cputrain::cuda {

/// How much dynamic shared memory each kernel was granted on each device. Any thread may ask.
class SharedMemoryGrants {
 public:
  /// Calls ask() unless the kernel has so many bytes on this device. Where ask() throws, nothing
  /// was granted.
  template <class Ask>
  void ask_once(int device, const void* kernel, std::size_t bytes, const Ask& ask) {
    const std::lock_guard lock(mutex_);
    const auto granted = granted_.find({device, kernel});
    if (granted != granted_.end() && bytes <= granted->second) return;
    ask();
    granted_[{device, kernel}] = bytes;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<int, const void*>, std::size_t> granted_;
};

}  // namespace cputrain::cuda
