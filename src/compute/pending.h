#pragma once

#include <functional>
#include <utility>

namespace cputrain::compute {

/// A result that a device may still be at. Valid as long as what it came from.
template <class T>
class Pending {
 public:
  Pending(T there = {}) : there_(std::move(there)) {}
  /// `fetch` waits until the device has come there.
  explicit Pending(std::function<T()> fetch) : fetch_(std::move(fetch)) {}

  T wait() const { return fetch_ ? fetch_() : there_; }

 private:
  T there_{};
  std::function<T()> fetch_;
};

}  // namespace cputrain::compute
