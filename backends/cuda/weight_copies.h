#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/updates.h"
#include "compute/parameters.h"

namespace cputrain::cuda {

class WeightCopies;

/// The weights of a program as its products read them: rounded once when they change, not by each
/// product. The copy lies beside the arena, number for number. In exact there is none, and products
/// read the weights themselves.
class WeightCopy {
 public:
  WeightCopy(WeightCopies& all, Numbers numbers);
  ~WeightCopy();
  WeightCopy(const WeightCopy&) = delete;
  WeightCopy& operator=(const WeightCopy&) = delete;

  /// What it takes of the device's memory.
  std::size_t bytes(const compute::ParameterLayout&) const;
  /// Where products read the weights that begin at `weights` in the arena. The first call takes the
  /// memory. Error(internal) where there is none.
  const void* of(const Array& arena, const float* weights);
  /// Rounds the weights again if the copy is stale: put into the stream before a pass reads it.
  void renew(Stream);
  /// Where an update writes it.
  CopiedWeights target() const;

 private:
  friend class WeightCopies;
  bool lies_beside(std::span<const std::byte> bytes) const;

  WeightCopies& all_;
  Numbers numbers_;
  Array weights_{};
  DeviceBlock copy_;
  std::atomic<bool> stale_ = true;
};

/// All copies of a backend's weights. Whoever writes to an array says so here: this alone decides
/// which copies are stale. Any thread may ask.
class WeightCopies {
 public:
  /// Numbers in these bytes of the device's memory were written, or will be by what was put into
  /// the backend's stream. `but`: a copy that was written with them.
  void written(std::span<const std::byte> bytes, const WeightCopy* but = nullptr);
  /// A copy of what lies there, or null.
  const WeightCopy* beside(const Array&) const;

 private:
  friend class WeightCopy;

  mutable std::mutex mutex_;
  std::vector<WeightCopy*> copies_;  ///< of programs that have their memory
};

}  // namespace cputrain::cuda
