#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compute/chunked_program.h"
#include "model/graph.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

namespace cputrain::training {

/// A training with everything decided that its ranks decide, once and alike on all of them.
struct TrainingPlan {
  TrainingSpec spec;   ///< fitted to the ranks
  int classes;         ///< outputs of the network
  model::Graph graph;  ///< as it is in files, whatever is sharded
  int micro_batch;     ///< images that a rank computes at once
  /// Images of a usual pass on the rank with the largest share: that share, at most micro_batch.
  int usual_images;
  /// With --reproducible: micro-batches are cut into chunks, of which each thread of each rank
  /// computes one at a time. Ranks with more threads than others leave those idle.
  std::optional<compute::ReproducibleChunks> chunks;
  /// Names of the dense layers that the ranks of a node compute together.
  std::vector<std::string> sharded;
  /// Whether what frozen layers make of images may be kept; off where each pass is to be timed.
  bool keeps_features = true;

  /// Leaves that a rank computes at once: arrays of gradients that it needs.
  int lanes() const { return chunks ? chunks->lanes : 1; }
  /// Whether a rank must compute all images of its share at once, since statistics are of them.
  bool whole_share() const {
    return spec.flags.sync_bn || (graph.has_batch_norm() && !spec.flags.micro_batch);
  }
};

/// Error(usage), on all ranks alike that have the same flags, where flags, network and ranks do not
/// go together: an image that is too small for the network, --sync-bn or --reproducible with a
/// network that does not allow it,
/// --shard-dense with nothing to shard. Sends nothing. `rank_memory`: bytes for each rank, the same
/// on all, of the device where it computes on one; as many as it wants where not known.
TrainingPlan plan_training(const Session&, TrainingSpec, int classes,
                           std::optional<std::size_t> rank_memory = {});

// How many images a rank computes at once.

/// What was asked, else 8 on one thread and 14 per thread up to 32 on several, with several ranks
/// 16; twice the threads at least; 4 where ranks are many times more than hardware threads; 128 on
/// a device.
int micro_batch_size(const TrainingFlags&, const Session&);

/// The same for a training of this network. Every pass reads all weights of a dense layer and
/// writes their gradient. So on CPUs it is 128 images where such layers are large, with more than
/// 16 threads 8 per thread. On a device it is 256: passes of more images cut gradients into fewer
/// slices. A quarter of the memory, a rank's or the device's, must do for them, else it is halved,
/// down to micro_batch_size(); without a figure it does.
int training_micro_batch(const TrainingFlags&, const Session&, const model::Graph&,
                         std::optional<std::size_t> rank_memory);

/// About what a training pass keeps of one image in bytes: activations and their gradients, but for
/// those that operators change in place or pool at once.
std::size_t activation_bytes(const model::Graph&);

// Which dense layers the ranks of a node compute together (model/rewrite.h: with_sharded_dense).

/// Whether fewer numbers move between memory and cores in one round of a dense layer with `in` x
/// `out` weights on a node whose `ranks` have `images` images at once:
/// - without, every rank reads the weights twice (forward, back to its inputs) and writes its
///   gradient once, which is then read to be summed: 4 in out; with it the node does that once;
/// - with it, inputs and their gradients are each copied to where all can read them and back: 4
///   images in; partial sums are written and read, gradients of outputs read, by every rank: 3
///   ranks images out.
/// Ranks wait for each other five times a round then, so that a delay of any holds up all in every
/// round, and not once a step. For a few MB that does not pay: layers with less than 2^20 weights
/// stay as they are; nor where the node has two ranks, each of which would read no more than half
/// as much.
bool sharding_pays(std::size_t in, std::size_t out, int ranks, std::size_t images);

/// How both parts of the data are cut into steps, for this rank.
struct BatchPlans {
  data::BatchPlan train, validation;

  /// Numbers of images that are computed at once in either, each once, ascending.
  std::vector<int> sizes() const;
};

/// Error(usage) where no step would be left: --drop-last with a batch larger than the data, or a
/// generator that stops before its first batch.
void check_steps(const TrainingSpec&, const data::BatchPlan&);

/// Validation runs as many images at once on every rank as training does, and the same chunks at
/// any number of ranks. Error(usage) as in check_steps().
BatchPlans cut_batches(const Session&, const TrainingPlan&, std::size_t train_images,
                       std::size_t validation_images);

/// Steps of a whole training: `steps` of them, else those of its epochs, which may grow.
std::uint64_t all_steps(const data::BatchPlan&, int epochs, std::optional<std::uint64_t> steps);

/// Images of every rank in the first step, whatever the sharding.
std::vector<std::size_t> images_by_rank(const data::BatchPlan&);

}  // namespace cputrain::training
