#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "training/plan/training_plan.h"

/// What a training takes of every node's memory, before it takes it.
namespace cputrain::training {

/// A machine of the job, or a container of it whose memory is limited, and what its ranks can still
/// get.
struct NodeCapacity {
  std::string host;
  std::vector<int> ranks;
  std::optional<std::size_t> available;  ///< bytes; nothing where the system does not report it
  bool in_group = false;                 ///< a control group allows no more of it
  std::string image_folder = {};  ///< where the file of decoded images lies; empty for memory
  /// Bytes of a backend's memory that is not the host's: what each of these ranks can get.
  std::optional<std::size_t> backend_available = {};
};

/// In the order of the hosts' first ranks, the same on every rank. Collective; before anything of
/// the training is allocated.
std::vector<NodeCapacity> measure_capacities(const Session&);

/// The least `of` all nodes; nothing where none reports it.
std::optional<std::size_t> least_available(
    const std::vector<NodeCapacity>&,
    std::optional<std::size_t> NodeCapacity::*of = &NodeCapacity::available);

/// Bytes that each rank of the tightest node can get beside what all of a node share; nothing where
/// no system reports it.
std::optional<std::size_t> rank_memory(std::vector<NodeCapacity>, std::size_t shared);

/// Bytes that one rank has for itself, in the host's memory except for `elsewhere`.
struct RankMemory {
  std::size_t weights = 0, gradients = 0;
  std::size_t state = 0;      ///< the update rule's, for the ranges that the rank owns
  std::size_t workspace = 0;  ///< activations and scratchpads of the program
  std::size_t batches = 0;    ///< images in flight
  std::size_t process = 0;    ///< held already: libraries, compiled kernels
  std::size_t grown = 0;      ///< the part of that which came since capacities were measured
  std::size_t threads = 0;    ///< what its threads will keep beside all that: system::kKeptFree
  std::size_t elsewhere = 0;  ///< the part of these in a backend's memory that is not the host's
  std::size_t images = 0;     ///< there: those in flight, or the whole training set
  std::size_t library = 0;    ///< there: what sums over devices, by estimate
  /// Weights once more, where they lie elsewhere: of a step that a signal ends, they are copied
  /// there before they are saved.
  std::size_t copy = 0;
  /// The copy of rank 0 that checkpoints are written from: where arrays lie, and in the host's
  /// memory.
  std::size_t snapshot = 0, snapshot_host = 0;
  /// The largest array of rank 0 as files have it, while it is written; in the host's memory.
  std::size_t written = 0;
  /// By which a start takes more of the host's memory than these, most of which come later.
  std::size_t start = 0;

  /// Host memory.
  std::size_t to_come() const {
    return weights + gradients + state + workspace + batches + images + library + copy + snapshot +
           snapshot_host + written + start + threads - elsewhere;
  }
  /// The same with --checkpoint-every 0.
  RankMemory without_snapshot() const;
  std::size_t host_workspace() const { return elsewhere > 0 ? 0 : workspace; }
  /// Wherever it lies.
  std::size_t total() const { return to_come() + elsewhere + process; }
};

/// Bytes that the ranks of a node have together.
struct SharedMemory {
  std::size_t cache = 0;  ///< decoded images
  std::size_t weights = 0;
  std::size_t file = 0;  ///< decoded images that lie on disk, which take none

  std::size_t total() const { return cache + weights; }
};

struct TrainingMemory {
  std::vector<NodeCapacity> capacities;
  std::vector<RankMemory> ranks;  ///< by rank
  SharedMemory shared;            ///< a node's
  bool state_divided = false;  ///< ranks own different ranges, so more of them take no more state

  /// The same with --checkpoint-every 0.
  TrainingMemory without_snapshot() const;
  /// The same without what is known by estimate alone, which refuses no training.
  TrainingMemory without_library() const;
  /// Bytes that a node needs beyond what its ranks hold already.
  std::size_t needed(const NodeCapacity&) const;
  /// Bytes that all of it takes.
  std::size_t in_all(const NodeCapacity&) const;
  bool fits() const { return !too_small() && !too_small_elsewhere(); }
  /// The first node that has too little.
  const NodeCapacity* too_small() const;
  /// The first node with a rank whose backend has too little of its own.
  const NodeCapacity* too_small_elsewhere() const;
  /// The most that one of the node's ranks needs of its backend's own.
  std::size_t elsewhere(const NodeCapacity&) const;
};

/// The largest of 1 .. tried - 1 for which `fits` is true, where it is true up to some number and
/// false from there on; within an eighth of it. 0 where nothing fits.
int largest_fitting(int tried, const std::function<bool(int)>& fits);

/// How many ranks with the needs of the largest one would fit on the node.
int ranks_that_fit(const TrainingMemory&, const NodeCapacity&);

// Refusals of trainings that cannot fit, before they take what they need.

/// Before the arenas are mapped: whether nodes have the least that any exchange needs of them.
/// Error(usage).
void check_arenas(const Session&, const TrainingPlan&, const std::vector<NodeCapacity>&,
                  const compute::ParameterLayout&);

/// Whether each node has what its ranks have asked for with so many `images` at once. Error(usage)
/// on all ranks alike, naming what would fit. Collective where it does not.
void check_fits(const Session&, const TrainingPlan&, const TrainingMemory&, int images);

}  // namespace cputrain::training
