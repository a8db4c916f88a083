#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

/// Which dense layers the ranks of a node compute together (model/rewrite.h: with_sharded_dense).
namespace cputrain::training {

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

/// Names of the layers to be sharded: those for which it pays; with --shard-dense the largest one
/// if it pays for none. None where nodes have one rank, or gradients go another way than slices
/// over shared memory. `usual_images` are those that a rank has at once in a step. Error(usage) on
/// all ranks alike where --shard-dense cannot be.
std::vector<std::string> layers_to_shard(const TrainingSpec&, const model::Graph&, const Session&,
                                         int usual_images);

/// What a person should know about them.
std::string sharding_line(const model::Graph&, const std::vector<std::string>& layers, int ranks);

}  // namespace cputrain::training
