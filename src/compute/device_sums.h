#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/array.h"

namespace cputrain::comm {
class Communicator;
}

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

/// What a backend's devices can do by themselves, as one rank sees it.
struct DeviceSumsFacts {
  std::string library{};         ///< "NCCL 2.28.9"; empty: they can do nothing
  std::string lack{}, remedy{};  ///< then why
  std::string device{};          ///< this rank's Device::identity: the same where ranks share it
  std::string varies{};          ///< what makes bits differ from run to run; empty: nothing
  bool share_devices = false;    ///< two ranks of a node on one device can sum
  // What exchange::gather_facts() fills in; DeviceSums::facts() does not know it.
  int node = 0;
  bool mpi_reads = false;  ///< MPI takes addresses of devices
};

/// Sums over the devices of all ranks, in their queues of work. All ranks make the same calls in
/// the same order. A sum that fails later, since a rank or the network between devices is gone,
/// makes all that reads the backend's arrays throw Error(internal).
class DeviceSum {
 public:
  virtual ~DeviceSum() = default;
  /// Puts the sum over ranks of this array there, in place: behind what the backend's calls have
  /// enqueued so far. What they enqueue later goes on beside it.
  virtual void enqueue(const Array&) = 0;
  /// What the backend's calls enqueue from now on comes behind the sums.
  virtual void join() = 0;
  /// A pass that has them was started: both calls above may be repeated by the device without being
  /// made.
  virtual void started() = 0;
  /// Bytes on the device.
  virtual std::size_t memory() const = 0;
  /// What the library will take there for itself: an estimate.
  virtual std::size_t library_memory() const = 0;
};

/// What makes them. The backend has it, as long as it lives.
class DeviceSums {
 public:
  virtual const DeviceSumsFacts& facts() const = 0;
  /// For arrays with at most `most` elements. `narrow`: numbers travel as bf16, rounded, and so are
  /// sums of some of the ranks on their way. Collective over the ranks of the communicator, which
  /// is borrowed. Error(internal).
  virtual std::unique_ptr<DeviceSum> make(comm::Communicator&, bool narrow, std::size_t most) = 0;

 protected:
  ~DeviceSums() = default;
};

/// Sums gradients as soon as they are final, as part of the pass that makes them: called where
/// gradients [0, n) are final behind what was enqueued so far. n only grows within a pass. The last
/// call of each has all of them: what is enqueued behind it finds the sums.
using PassSums = std::function<void(std::size_t n)>;

}  // namespace cputrain::compute
