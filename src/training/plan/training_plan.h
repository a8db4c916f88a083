#pragma once

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
/// on all; as many as it wants where not known.
TrainingPlan plan_training(const Session&, TrainingSpec, int classes,
                           std::optional<std::size_t> rank_memory = {});

}  // namespace cputrain::training
