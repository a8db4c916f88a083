#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>

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
///   the cache when it is added (Segments).

/// The sum of an array over the ranks of a group, in place: all ranks call it with arrays of one
/// length and get the same bits. Not for two threads at once.
class Allreduce {
 public:
  virtual ~Allreduce() = default;
  virtual void sum(const Array& numbers) = 0;
};

/// The algorithms; each begins with what it costs in allreduce.cpp. n is the length in bytes, P the
/// ranks.
std::unique_ptr<Allreduce> make_ring(PointToPoint&);
std::unique_ptr<Allreduce> make_recursive_doubling(PointToPoint&);
std::unique_ptr<Allreduce> make_rabenseifner(PointToPoint&);
std::unique_ptr<Allreduce> make_tree(PointToPoint&);
/// One rank adds up for all: what a parameter server does with gradients.
std::unique_ptr<Allreduce> make_server(PointToPoint&);

/// dst = src[0] + src[1] + ..., in that order, of equally long arrays; dst may be one of them.
using SumArrays = std::function<void(std::span<const Array> src, const Array& dst)>;
/// The same in plain loops on the calling thread.
void sum_plainly(std::span<const Array> src, const Array& dst);

/// Moves and adds long arrays segment by segment, so that what was received is still in the cache
/// when it is added and no more memory than for one segment is needed.
class Segments {
 public:
  static constexpr std::size_t kBytes = std::size_t{1} << 20;

  /// Sends `out` to a rank and adds what comes from another to `in`. The ranks' arrays may have
  /// different lengths, but what one sends is as long as what the other expects.
  void exchange_and_add(PointToPoint& peers, int to, const Array& out, int from, const Array& in);
  /// Sends segment after segment to a rank that receives and adds.
  void send(PointToPoint& peers, int to, const Array& out) {
    exchange_and_add(peers, to, out, to, out.slice(0, 0));
  }
  /// Adds what comes from a rank.
  void receive_and_add(PointToPoint& peers, int from, const Array& in) {
    exchange_and_add(peers, from, in.slice(0, 0), from, in);
  }

 private:
  Array received(std::size_t elements, DType dtype);
  std::unique_ptr<std::byte[]> memory_;
};

/// Chunk i of an array cut into `chunks` that are as equal as can be.
inline Array chunk_of(const Array& whole, int i, int chunks) {
  const auto k = static_cast<std::size_t>(i), n = static_cast<std::size_t>(chunks);
  return whole.slice(whole.size * k / n, whole.size * (k + 1) / n);
}

}  // namespace cputrain::comm
