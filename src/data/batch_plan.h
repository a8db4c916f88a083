#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/array.h"

namespace cputrain {

/// Order of the samples in an epoch: a permutation of 0..n-1 that is f(seed, epoch).
std::vector<std::uint32_t> epoch_order(std::size_t n, std::uint64_t seed, int epoch);

/// Which part of `count` things rank `rank` of `size` works on: slices as equal as can be, in rank
/// order; uneven and empty ones are normal (96 divides none of 128, 256, 512, 1024).
Range share(std::size_t count, int rank, int size);

/// How an epoch of `samples` is cut into steps of `global_batch`, a step into the ranks' shares,
/// and a share into micro-batches. The last step has what is left. All ranks run the same number of
/// micro-batches in a step, empty ones included.
class BatchPlan {
 public:
  BatchPlan(std::size_t samples, std::size_t global_batch, int micro_batch, int rank, int size);

  std::size_t samples() const { return samples_; }
  std::size_t global_batch() const { return global_batch_; }
  int micro_batch() const { return micro_batch_; }
  std::size_t steps() const;
  /// Images of the whole step, over all ranks.
  std::size_t images(std::size_t step) const;
  /// Number of micro-batches that every rank runs in the step: at least 1.
  int micro_batches(std::size_t step) const;
  /// Positions in the epoch's order that are micro-batch k of this rank's share in the step.
  Range piece(std::size_t step, int k) const;
  /// Every number of images that this rank will run at once, ascending, without 0; {1} for a rank
  /// that never has an image, since it needs a program all the same to take part in every step.
  std::vector<int> sizes() const;

 private:
  std::size_t samples_, global_batch_;
  int micro_batch_, rank_, size_;
};

}  // namespace cputrain
