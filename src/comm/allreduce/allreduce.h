#pragma once

#include <memory>

#include "comm/point_to_point.h"
#include "core/array.h"

namespace cputrain::comm {

/// The sum of an array over the ranks of a group, in place: all ranks call it with arrays of one
/// length and get the same bits. Not for two threads at once.
///
/// What algorithms cut: a bucket is the range of gradients that one call sums (exchange/buckets.h).
/// A chunk is the part of it that a step works on: 1/P in a ring, halves of halves in
/// Rabenseifner's algorithm. A segment (segments.h) is what one message holds of a chunk.
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
