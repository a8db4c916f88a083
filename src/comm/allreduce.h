#pragma once

#include <memory>

#include "comm/point_to_point.h"
#include "core/array.h"

namespace cputrain::comm {

/// Words for what an array is cut into, from the largest to the smallest:
///
/// - bucket: gradients of some layers, as --bucket-mb cuts them. It is what one sum gets, and sums
///   of buckets may travel while backward goes on (exchange/buckets.h).
/// - slice: what one rank of a node sums, and updates, of what all ranks of the node have in its
///   memory; other nodes' ranks have the same one (node.h). A sharded layer's is a shard.
/// - chunk: the part of the array that a step of an algorithm works on: one of P in a ring, halves
///   of halves in Rabenseifner's algorithm.
/// - segment: what one message moves of any of these, at most a megabyte, so that it is still in
///   the cache when it is added (sum_arrays.h).

/// The sum of an array over the ranks of a group, in place: all ranks call it with arrays of one
/// length and get the same bits. Not for two threads at once.
class Allreduce {
 public:
  virtual ~Allreduce() = default;
  virtual void sum(const Array& numbers) = 0;
};

/// The algorithms; each file begins with what it costs. n is the length in bytes, P the ranks.
std::unique_ptr<Allreduce> make_ring(PointToPoint&);
std::unique_ptr<Allreduce> make_recursive_doubling(PointToPoint&);
std::unique_ptr<Allreduce> make_rabenseifner(PointToPoint&);
std::unique_ptr<Allreduce> make_tree(PointToPoint&);
/// One rank adds up for all: what a parameter server does with gradients.
std::unique_ptr<Allreduce> make_server(PointToPoint&);

}  // namespace cputrain::comm
