#pragma once

#include <cstdint>

namespace cputrain {

/// The calling rank reads or writes so many bytes of its node's memory: they go through the node's
/// memory link (simulation/platform.h), which all of its ranks share.
void move_memory(double bytes);

/// What a rank's core does with simulated time.
class SimulatedCore final {
 public:
  /// `spread`: of the seconds of a pass, relative; each rank draws its own.
  SimulatedCore(double spread, std::uint64_t seed, int rank)
      : spread_(spread), seed_(seed), rank_(rank) {}

  /// Computes for so many seconds, more or less, while bytes are moved: the longer one counts.
  void work(double seconds, double bytes);
  /// Of the time so far, what waiting for bytes added.
  double memory_stall() const { return memory_stall_; }

 private:
  double disturbance();

  double spread_;
  std::uint64_t seed_;
  int rank_;
  std::uint32_t draws_ = 0;
  double memory_stall_ = 0;
};

}  // namespace cputrain
