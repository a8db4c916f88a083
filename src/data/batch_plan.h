#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/array.h"
#include "core/names.h"

namespace cputrain::data {

/// Order of the samples in an epoch: a permutation of 0..n-1 that is f(seed, epoch).
std::vector<std::uint32_t> epoch_order(std::size_t n, std::uint64_t seed, int epoch);

/// Which part of `count` things rank `rank` of `size` works on: slices as equal as can be, in rank
/// order; uneven and empty ones are normal (96 divides none of 128, 256, 512, 1024).
Range share(std::size_t count, int rank, int size);

/// How ranks share the samples of a batch.
enum class Sharding {
  slices,   ///< a slice of the batch each, in rank order
  dealt,    ///< micro-batch after micro-batch, in rank order, until the batch is empty
  strided,  ///< every n-th sample of the order: Horovod's "shuffle, shard, batch"
  /// The same on the data's own order, which is never shuffled: its "shard, batch". Each rank sees
  /// one kind of sample only, where kinds alternate in the data.
  shard_then_batch,
  /// Every rank reads the whole order from its start and stops after 1/n of the batches: ranks draw
  /// the same samples, and an epoch shows about 1/n of the data.
  generator,
};
/// `dealt` cannot be asked for by name: --reproducible has it.
constexpr auto names(Sharding) {
  return std::to_array<Name<Sharding>>({{Sharding::slices, "slices"},
                                        {Sharding::strided, "strided"},
                                        {Sharding::shard_then_batch, "shard-then-batch"},
                                        {Sharding::generator, "generator"}});
}

/// The batch is `factor` times the first one after `epochs` epochs.
struct BatchGrowth {
  int epochs;
  int factor;
  bool operator==(const BatchGrowth&) const = default;
};

struct PlanOptions {
  Sharding sharding = Sharding::slices;
  bool drop_last = false;             ///< samples that fill no whole step are left out
  int accumulate = 1;                 ///< batches whose gradients make one step
  std::vector<BatchGrowth> growth{};  ///< epochs ascend
};

/// Positions in the epoch's order: begin, begin + stride, ...
struct StridedRange {
  std::size_t begin = 0;
  std::size_t count = 0;
  std::size_t stride = 1;

  std::size_t size() const { return count; }
  std::size_t at(std::size_t i) const { return begin + i * stride; }
};

/// How an epoch is cut into steps, a step into batches (one, unless gradients accumulate), a batch
/// into the ranks' shares, and a share into micro-batches. The last step has what is left. All
/// ranks run the same number of micro-batches in a step, empty ones included.
///
/// Everything but in_epoch() and sizes() speaks of one epoch: of the first one, before in_epoch().
class BatchPlan {
 public:
  BatchPlan(std::size_t samples, std::size_t global_batch, int micro_batch, int rank, int size,
            PlanOptions options = {});

  /// The plan of an epoch (from 0), with the batch that has grown until then.
  BatchPlan in_epoch(int epoch) const;

  std::size_t samples() const { return samples_; }
  std::size_t global_batch() const { return global_batch_; }
  int micro_batch() const { return micro_batch_; }
  int ranks() const { return size_; }
  const PlanOptions& options() const { return options_; }
  /// Steps of an epoch; none where all samples are left out.
  std::size_t steps() const;
  /// Images of the whole step, over all ranks.
  std::size_t images(std::size_t step) const;
  /// What all ranks work on in the step: in one order, and in the fewest pieces, so that most ways
  /// to share have the same at any number of ranks.
  std::vector<StridedRange> all_pieces(std::size_t step) const;
  /// Number of micro-batches that every rank runs in the step: at least 1.
  int micro_batches(std::size_t step) const;
  /// Micro-batch k of this rank's shares in the step.
  StridedRange piece(std::size_t step, int k) const;
  /// Images of the step's last micro-batch, by rank: the same answer on all ranks.
  std::vector<std::size_t> last_images(std::size_t step) const;
  /// Every number of images that this rank will run at once in any epoch, ascending, without 0; {1}
  /// for a rank that never has an image, since it needs a program all the same to take part in
  /// every step.
  std::vector<int> sizes() const;

 private:
  std::size_t batches() const;
  StridedRange share_of(std::size_t batch, int rank) const;
  std::size_t batch_images(std::size_t batch) const;
  int micro_batches_of(std::size_t batch) const;
  std::size_t last_batch(std::size_t step) const;
  StridedRange micro_batch_of(std::size_t batch, int k, int rank) const;

  std::size_t samples_, global_batch_;
  int micro_batch_, rank_, size_;
  PlanOptions options_;
};

/// Epochs, with a fraction, that a training takes: `epochs`, or as many as `steps` make.
double training_epochs(const BatchPlan&, int epochs, std::optional<std::uint64_t> steps);

}  // namespace cputrain::data
