#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "compute/memory.h"
#include "compute/parameters/parameters.h"

namespace cputrain::loop {

/// Which ranks own which elements of an arena, and the way of numbers between rank 0, which has an
/// array as long as the arena, and the ranks, which have them for what they own. An element's
/// owners are counted in the order of ranks: where every rank owns everything, its owner k is rank
/// k; where the ranks of a node share the arena out among them, one of node k. Numbers travel in
/// pieces of a few megabytes, so that no other rank needs an array of that length.
class ArenaOwners {
 public:
  /// Each rank names the ranges that it owns, which do not overlap. Collective.
  ArenaOwners(comm::Communicator&, std::span<const Range> owned);

  /// The most owners that an element has.
  int owners() const { return most_; }
  /// The first owner of an element; -1 where it has none.
  int first_owner(std::size_t element) const;
  /// The same number for the same owners of the same elements.
  std::uint64_t hash() const;

  /// Copies the numbers of each element's owner `k` into `whole`, an array of rank 0; elements that
  /// have fewer owners stay as they are there. `mine`: of what this rank owns, in ranges as it
  /// named them. All arrays lie in this memory. Collective.
  void gather(int k, std::span<const compute::ArenaPart> mine, compute::Memory&,
              const Array& whole);
  /// The way back: to each element's owner `k` alone.
  void deal(int k, std::span<const compute::ArenaPart> mine, compute::Memory&, const Array& whole);
  /// The way back to all owners of each element.
  void deal_to_all(std::span<const compute::ArenaPart> mine, compute::Memory&, const Array& whole);

 private:
  /// Elements with the same owners; within one range of each of them.
  struct Piece {
    Range range;
    std::vector<int> owners;  ///< ascending
  };

  bool leads() const { return communicator_.rank() == 0; }
  template <class F>
  static void for_parts(const Piece&, DType, const F&);
  static Array own_part(std::span<const compute::ArenaPart> mine, Range);
  std::span<std::byte> staged(std::size_t bytes);
  void send(int to, compute::Memory&, const Array&);
  void receive(int from, compute::Memory&, const Array&);
  void deal_part(int owner, std::span<const compute::ArenaPart> mine, compute::Memory&,
                 const Array& whole, Range);
  void broadcast_part(std::span<const compute::ArenaPart> mine, compute::Memory&,
                      const Array& whole, Range);

  comm::Communicator& communicator_;
  std::unique_ptr<comm::PointToPoint> peers_;
  std::vector<Piece> pieces_;  ///< ascending; of elements that have owners
  int most_ = 0;
  std::vector<std::byte> staged_;  ///< in the host's memory, for memory that it cannot reach
};

}  // namespace cputrain::loop
