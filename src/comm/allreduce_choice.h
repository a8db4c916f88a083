#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/allreduce.h"
#include "comm/communicator.h"
#include "comm/node.h"
#include "comm/point_to_point.h"
#include "core/statistics/statistics.h"

/// The value of --allreduce, and the algorithm that follows from it.
namespace cputrain::comm {

/// Arrays of `first` to `last` bytes are summed by this algorithm.
struct SizeRange {
  std::string algorithm;
  std::size_t first = 0;
  std::size_t last = std::numeric_limits<std::size_t>::max();
  bool operator==(const SizeRange&) const = default;
};

/// How gradients get from device to device.
enum class DevicePath {
  alone,   ///< one rank: nothing travels
  nccl,    ///< the devices by themselves
  direct,  ///< MPI reads the devices' memory
  staged   ///< by way of pinned memory of the host
};

struct AllreduceChoice {
  /// `automatic` decides by itself; `replicas` sums over all ranks, each of which keeps everything;
  /// `slices` within nodes over shared memory, between nodes slice by slice; `server` on rank 0.
  enum class Scheme { automatic, replicas, slices, server };
  Scheme scheme = Scheme::automatic;
  /// Between ranks, or between nodes; empty: measure and take the best.
  std::vector<SizeRange> ranges;
  /// `shm`, which sums within one node only.
  bool one_node = false;
  /// How gradients of GPUs travel; nothing: as ranks can best. `staged` alone asks for an
  /// algorithm.
  std::optional<DevicePath> devices{};

  bool operator==(const AllreduceChoice&) const = default;
};

/// Algorithms between ranks: those of allreduce.h, and `mpi`, the engine's own.
const std::vector<std::string>& allreduce_algorithms();
/// All words that --allreduce knows, these included.
std::vector<std::string> allreduce_words();

/// The algorithm that sums so many bytes over the ranks in the least time, as allreduce.cpp says,
/// where a message takes such seconds by its bytes. `mpi` is never it.
std::string quickest_algorithm(const Line& message, int ranks, double bytes);

/// auto | shm | hierarchical[+ALGORITHM] | ps | nccl | staged | ALGORITHM |
/// ALGORITHM:FIRST-LAST;... (bytes, `max` for no end; oneCCL's grammar). Ranges must cover every
/// size once. Throws Error(usage).
AllreduceChoice parse_allreduce(const std::string& text);
/// The same words back.
std::string to_text(const AllreduceChoice&);

/// The algorithm called so over `peers`; `engine` is what `mpi` means.
std::unique_ptr<Allreduce> make_algorithm(const std::string& name, PointToPoint& peers,
                                          std::unique_ptr<Allreduce> engine);

/// An algorithm with the channel it works on.
struct Channel {
  std::unique_ptr<PointToPoint> peers;
  std::unique_ptr<PointToPoint> group;  ///< some of `peers`; null: the algorithm is between all
  std::unique_ptr<Allreduce> allreduce;

  /// Those that `allreduce` sums over.
  PointToPoint& members() const { return group ? *group : *peers; }
};

/// The algorithms of these ranges between all ranks, and between this rank and the owners of the
/// same slice on other nodes (itself alone where it owns none). Collective over all ranks.
Channel open_world(Communicator&, const std::vector<SizeRange>&);
Channel open_lane(Communicator&, const NodeMap&, const std::vector<SizeRange>&);

using OpenChannel = std::function<Channel(const std::vector<SizeRange>&)>;

}  // namespace cputrain::comm
