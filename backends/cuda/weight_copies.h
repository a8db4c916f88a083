#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <map>
#include <mutex>
#include <span>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernels/numbers.h"
#include "backends/cuda/kernels/updates.h"

namespace cputrain::cuda {

/// The weights of an arena as products read them: rounded once when they change, not by each
/// product. One copy for all programs of the arena, number for number. In exact there is none, and
/// products read the weights themselves.
class WeightCopy {
 public:
  WeightCopy(Numbers numbers, std::span<const std::byte> arena)
      : numbers_(numbers), arena_(arena) {}

  /// Where products read the weights that begin at `weights` in the arena. The first call takes the
  /// memory. Error(internal) where there is none.
  const void* of(const float* weights);
  /// Rounds the weights again if the copy is stale: put into the stream before a pass reads it.
  void renew(Stream);
  /// Where an update writes it.
  CopiedWeights target() const;

 private:
  friend class WeightCopies;
  const float* first() const { return reinterpret_cast<const float*>(arena_.data()); }
  std::size_t count() const { return arena_.size() / sizeof(float); }

  Numbers numbers_;
  std::span<const std::byte> arena_;
  DeviceBlock copy_;
  std::atomic<bool> stale_ = true;
};

/// The copies of a backend's weights: one beside each block of its memory, as long as that lives.
/// It takes no memory before products ask for it. Any thread may ask.
class WeightCopies {
 public:
  explicit WeightCopies(Numbers numbers) : numbers_(numbers) {}
  ~WeightCopies() { assert(copies_.empty() && "a block outlives its memory"); }

  /// Bytes that the copy of so many weights takes.
  std::size_t bytes(std::size_t weights) const {
    return numbers_ == Numbers::exact ? 0 : weights * stored_bytes(numbers_);
  }
  /// The copy of what lies there; null where no block does.
  WeightCopy* find(const void* weights);
  /// Numbers in these bytes of a block were written, or will be by what was put into the backend's
  /// stream: their copy is stale. Updates write both and need no such call.
  void written(std::span<const std::byte> bytes);

  // A block's own.
  void add(std::span<const std::byte> block);
  void remove(std::span<const std::byte> block);

 private:
  WeightCopy* copy_of(const void* weights);

  Numbers numbers_;
  std::mutex mutex_;
  std::map<const std::byte*, WeightCopy> copies_;  ///< by where blocks begin
};

}  // namespace cputrain::cuda
