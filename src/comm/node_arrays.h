#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "comm/node.h"
#include "core/array.h"

namespace cputrain::comm {

/// Slices begin at multiples of this many elements: whole pages, so that no two ranks write the
/// same cache line or touch the same page first; norms are formed block by block on the same grid.
inline constexpr std::size_t kSliceGrid = 4096;

/// Slice `lane` of `lanes` of a range; as equal as the grid allows, together the whole of it.
Range slice_of(Range whole, int lane, int lanes);

/// Equally long arrays in a node's shared memory, `each` of them for every rank; a rank's own lie
/// together, and it is the first to touch them.
class NodeArrays {
 public:
  /// Collective over the node; Error(internal) on all of its ranks where there is no room.
  NodeArrays(NodeMemory&, std::size_t elements, DType, int each = 1);
  /// This rank will use these elements of its arrays only, ascending: others cost no memory.
  NodeArrays(NodeMemory&, std::size_t elements, DType, int each, std::span<const Range> used);

  Array of(int local_rank, int which = 0) const;
  Array mine(int which = 0) const { return of(local_rank_, which); }
  /// The same range of all ranks' arrays, in the order of ranks and then of arrays.
  std::vector<Array> slices(Range) const;
  /// What this rank's own take.
  std::size_t own_bytes() const { return own_bytes_; }

 private:
  std::size_t elements_;
  DType dtype_;
  std::size_t stride_;  ///< bytes
  int local_rank_, local_size_, each_;
  std::size_t own_bytes_ = 0;
  std::unique_ptr<system::SharedBlock> block_;
};

/// Whether the ranks of a node are changing what they share. Each rank calls begin() before and
/// end() after its part of a change.
class NodeVersion {
 public:
  explicit NodeVersion(NodeMemory&);
  void begin();
  void end();
  /// Twice the number of changes; odd while one is under way.
  std::uint64_t value() const;

 private:
  std::unique_ptr<system::SharedBlock> block_;
  std::uint64_t writers_;
};

/// Which ranks share which node.
struct NodeMap {
  std::vector<std::vector<int>> ranks;  ///< by node, in the order of local ranks
  int node = 0;                         ///< this rank's
  int local = 0;                        ///< this rank's place in it

  int nodes() const { return static_cast<int>(ranks.size()); }
  int local_size() const { return static_cast<int>(own().size()); }
  const std::vector<int>& own() const { return ranks[static_cast<std::size_t>(node)]; }
  /// Slices that a gradient is cut into on every node: as many as the smallest node has ranks, so
  /// that each slice has an owner on every node.
  int lanes() const;
  /// Whether all nodes have the same number of ranks.
  bool even() const;
  /// The node of each rank.
  std::vector<int> by_rank() const;
  /// The ranks that own slice `lane`, one a node.
  std::vector<int> lane(int lane) const;
};

/// Collective. Nodes come in the order of their first ranks.
NodeMap read_node_map(Communicator&);

}  // namespace cputrain::comm
