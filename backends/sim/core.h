#pragma once

#include <cstdint>

#include "system/host_calls.h"

namespace cputrain::sim {

/// The simulated clock, and memory without contents. Large areas, which hold gradients, weights and
/// the like, are all the same one. SMPI knows it and sends from it without copying a byte; what is
/// read from it is garbage. Small areas, which hold counters, are real.
system::HostCalls simulated_host();

/// The calling rank reads or writes so many bytes of its node's memory: they go through the node's
/// memory link (scaling/simulation/platform.h), which all of its ranks share.
void move_memory(double bytes);

/// What a rank's threads do with simulated time.
class SimulatedCore final {
 public:
  /// `noise`: of a micro-batch's seconds, relative; each rank draws its own.
  SimulatedCore(double noise, std::uint64_t seed, int rank, int threads)
      : noise_(noise), seed_(seed), rank_(rank), threads_(threads) {}

  /// A new micro-batch begins, which is disturbed in its own way.
  void begin_micro_batch() { disturbance_ = draw(); }
  /// Computes a part of it for so many seconds, more or less, while bytes are moved: the longer one
  /// counts.
  void work_on_micro_batch(double seconds, double bytes);
  /// Seconds that waiting for bytes has added to micro-batches so far.
  double memory_stall() const { return memory_stall_; }

  /// As much for work between micro-batches, which is disturbed too little to notice.
  void work(double seconds, double bytes) const;

 private:
  double draw();

  double noise_;
  std::uint64_t seed_;
  int rank_, threads_;
  std::uint32_t draws_ = 0;
  double disturbance_ = 1;
  double memory_stall_ = 0;
};

}  // namespace cputrain::sim
