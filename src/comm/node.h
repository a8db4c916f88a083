#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/array.h"
#include "system/pages.h"

namespace cputrain::comm {

class Communicator;

/// The node's shared memory, and where its ranks meet. A simulated cluster supplies its own.
class NodeMemory {
 public:
  virtual ~NodeMemory() = default;
  virtual int local_rank() const = 0;
  virtual int local_size() const = 0;
  /// The global rank of the node's local rank 0: it identifies the node.
  virtual int first_rank() const = 0;
  /// No rank of the node goes on before all have arrived; writes to shared memory before it are
  /// seen after it. A rank alone waits for none.
  virtual void barrier() = 0;
  /// Collective over the node's ranks, which all ask for the same size. Each of them is the first
  /// to touch the bytes it names, so that they lie in its NUMA node's memory. Bytes that no rank
  /// names cost no memory and must not be written. Where there is not enough memory, all of them
  /// throw Error(internal).
  virtual std::unique_ptr<system::SharedBlock> allocate_touched(std::size_t bytes,
                                                                std::span<const Range> mine) = 0;
  /// The same with an equal part for each, in the order of ranks, of whole pages.
  std::unique_ptr<system::SharedBlock> allocate(std::size_t bytes);

  /// The same for what is large, written once and read from then on, such as decoded images: where
  /// the memory that ranks share is too small (containers), it lies in a file that no other process
  /// sees and that goes with its last one. Collective over the node's ranks. Error(usage) on all of
  /// them where there is no space for it.
  virtual std::unique_ptr<system::SharedBlock> allocate_large(std::size_t bytes) {
    return allocate(bytes);
  }
  /// The folder of the file in which allocate_large() would put so many bytes now; empty for
  /// memory. Collective over the node's ranks; Error(usage) as there.
  virtual std::string folder_of_large(std::size_t) { return {}; }

  /// A folder on disk that has room for a file of so many bytes; empty where there is none, or no
  /// way to share it. Collective over the node's ranks.
  virtual std::string folder_for(std::size_t) { return {}; }
  /// As allocate_large() in a file, in that folder: for what memory has no room for.
  virtual std::unique_ptr<system::SharedBlock> allocate_in(const std::string& folder,
                                                           std::size_t bytes);
};

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
