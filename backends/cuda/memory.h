#pragma once

#include <mutex>
#include <string>

#include "backends/cuda/device/device.h"
#include "backends/cuda/weight_copies.h"
#include "compute/device_sums.h"
#include "compute/memory.h"

namespace cputrain::cuda {

/// As DeviceBlock, with undefined contents.
std::unique_ptr<system::SharedBlock> take_block(std::size_t bytes, const char* name);

/// The stream on which a backend computes, and the place in it up to which calls have returned:
/// what others may build upon. Any thread may ask.
class ComputeStream {
 public:
  Stream get() const { return stream_.get(); }
  void synchronize() const {
    stream_.synchronize();
    check();
  }
  /// What is in it computes nonsense from now on, with these words for why: a sum over ranks was
  /// given up. Reading what it computed throws. The first words count.
  void spoil(const std::string& why);
  /// Throws Error(internal) where it is spoilt. Behind a wait, it knows of all that came before.
  void check() const;
  /// A call that computes returns: what it put into the stream counts from now on.
  void finish_call();
  /// What is put into `other` begins behind all finished calls.
  void hold_up(Stream other) const;

 private:
  OwnedStream stream_;
  mutable std::mutex mutex_;
  Event finished_;
  std::string spoilt_;
};

/// A place in a stream of the backend that has `compute`.
class StreamEvent final : public compute::Event {
 public:
  explicit StreamEvent(const ComputeStream& compute) : compute_(compute) {}
  /// Also within a capture: then each launch of the graph records it anew.
  void record(Stream stream) {
    is_capturing(stream) ? event_.record_in_graph(stream) : event_.record(stream);
  }
  void hold_up(Stream stream) const { event_.hold_up(stream); }
  bool was_reached() const { return event_.was_reached(); }
  void wait() override {
    event_.synchronize();
    compute_.check();
  }

 private:
  const ComputeStream& compute_;
  cuda::Event event_;  // Event is its base here
};

/// A device's memory. Copies go through a stream of their own, so that what exchanges gradients
/// need not wait for the rest of a backward pass, which is a call that has not returned yet.
class DeviceMemory final : public compute::Memory {
 public:
  /// `sharers`: ranks that have the device; `numbers`: of copies of weights. The stream is
  /// borrowed.
  DeviceMemory(int device, int sharers, Numbers numbers, const ComputeStream& compute);

  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes) override;
  void read(const void* src, std::span<std::byte> dst) override {
    fetch(src, dst, When::behind_calls);
  }
  void write(std::span<const std::byte> src, void* dst) override {
    send(src, dst, When::behind_calls);
  }
  void read_now(const void* src, std::span<std::byte> dst) override { fetch(src, dst, When::now); }
  void write_now(std::span<const std::byte> src, void* dst) override { send(src, dst, When::now); }
  /// Pinned memory: copies from and to other memory of the host go through the driver's own.
  std::unique_ptr<system::SharedBlock> staging(std::size_t bytes) override;
  void copy(const void* src, void* dst, std::size_t bytes) override;
  bool is_host() const override { return false; }
  std::optional<std::size_t> available() const override;

  /// Those of weights that lie here.
  WeightCopies& weight_copies() { return copies_; }

 private:
  enum class When { now, behind_calls };

  /// Comes behind all calls that have returned, or at once, and is done when it returns.
  void transfer(const void* src, void* dst, std::size_t bytes, When);
  void fetch(const void* src, std::span<std::byte> dst, When);
  void send(std::span<const std::byte> src, void* dst, When);

  int device_;
  int sharers_;
  const ComputeStream& compute_;
  WeightCopies copies_;
  std::mutex mutex_;  ///< for what follows
  OwnedStream stream_;
  Event ready_;  ///< behind the calls that a copy waits for
};

}  // namespace cputrain::cuda
