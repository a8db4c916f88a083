#pragma once

namespace cputrain::compute {

/// A place in a device's queue of work. Calls may come from any thread.
class Event {
 public:
  virtual ~Event() = default;
  /// Until the device has come there.
  virtual void wait() = 0;
};

/// Null stands for a place that was reached already.
inline void wait_for(Event* event) {
  if (event) event->wait();
}

}  // namespace cputrain::compute
