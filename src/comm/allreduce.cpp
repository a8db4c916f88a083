// The algorithms of allreduce: P ranks add n bytes each.

#include "comm/allreduce.h"

#include <bit>
#include <cassert>

namespace cputrain::comm {
namespace {

/// By blocks that stay in the first-level cache, so that each source is read in one run.
template <class T>
void sum(std::span<const Array> src, const Array& dst) {
  constexpr std::size_t kBlock = 2048;
  T block[kBlock];
  T* const out = dst.as<T>().data();
  for (std::size_t begin = 0; begin < dst.size; begin += kBlock) {
    const std::size_t n = std::min(kBlock, dst.size - begin);
    std::copy_n(src[0].as<T>().data() + begin, n, block);
    for (const Array& array : src.subspan(1)) {
      const T* const in = array.as<T>().data() + begin;
      for (std::size_t i = 0; i < n; ++i) block[i] += in[i];
    }
    std::copy_n(block, n, out + begin);
  }
}

/// Algorithms that pair ranks need a power of two of them. With P = 2^k + r ranks, the first 2 r
/// ranks fold in pairs: the odd one gives its numbers to the even one before it and gets the result
/// afterwards: 2 more steps and 2 n more bytes for those ranks.
class Folded {
 public:
  explicit Folded(PointToPoint& peers)
      : peers_(peers),
        size_(static_cast<int>(std::bit_floor(static_cast<unsigned>(peers.size())))),
        pairs_(peers.size() - size_) {}

  int size() const { return size_; }
  bool takes_part() const { return !(peers_.rank() < 2 * pairs_ && peers_.rank() % 2 == 1); }
  /// The number of a rank that takes part, from 0 to size() - 1, and back.
  int rank() const {
    return peers_.rank() < 2 * pairs_ ? peers_.rank() / 2 : peers_.rank() - pairs_;
  }
  int peer(int rank) const { return rank < pairs_ ? 2 * rank : rank + pairs_; }

  void fold(Segments& segments, const Array& numbers) {
    if (!in_pair()) return;
    if (takes_part()) return segments.receive_and_add(peers_, peers_.rank() + 1, numbers);
    segments.send(peers_, peers_.rank() - 1, numbers);
  }
  void unfold(const Array& numbers) {
    if (!in_pair()) return;
    if (takes_part()) return peers_.send(peers_.rank() + 1, numbers.bytes());
    peers_.receive(peers_.rank() - 1, numbers.bytes());
  }

 private:
  bool in_pair() const { return peers_.rank() < 2 * pairs_; }

  PointToPoint& peers_;
  int size_, pairs_;
};

/// Ring: 2 (P - 1) steps, 2 n (P - 1) / P bytes a rank. Patarasuk and Yuan, "Bandwidth optimal
/// all-reduce algorithms for clusters of workstations", 2009.
void sum_in_ring(PointToPoint& peers, Segments& segments, const Array& numbers) {
  const int size = peers.size(), rank = peers.rank();
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  const auto chunk = [&](int i) { return chunk_of(numbers, (i + size) % size, size); };
  // Reduce-scatter: a chunk goes round once and grows by what each rank has, so chunk rank + 1
  // ends here, complete.
  for (int step = 0; step + 1 < size; ++step) {
    segments.exchange_and_add(peers, next, chunk(rank - step), before, chunk(rank - step - 1));
  }
  // Allgather: complete chunks go round once more.
  for (int step = 0; step + 1 < size; ++step) {
    peers.exchange(next, chunk(rank + 1 - step).bytes(), before, chunk(rank - step).bytes());
  }
}

/// Recursive doubling: log2 P steps, n log2 P bytes a rank (2 n more where ranks fold): few
/// messages, for short arrays. Thakur, Rabenseifner and Gropp, "Optimization of collective
/// communication operations in MPICH", 2005, section 4.5. After the step at distance d, each group
/// of 2 d ranks has its sum. Partners add a + b and b + a, which are the same bits.
void sum_by_doubling(PointToPoint& peers, Segments& segments, const Array& numbers) {
  Folded folded(peers);
  folded.fold(segments, numbers);
  for (int distance = 1; folded.takes_part() && distance < folded.size(); distance *= 2) {
    const int partner = folded.peer(folded.rank() ^ distance);
    segments.exchange_and_add(peers, partner, numbers, partner, numbers);
  }
  folded.unfold(numbers);
}

/// Halving: pairs at this distance, the widest, exchange halves, then narrower ones halves of
/// those, until each rank has the sum of one chunk. Doubling goes the same way back.
void halve_and_double(PointToPoint& peers, const Folded& folded, int distance, Segments& segments,
                      const Array& numbers) {
  if (distance == 0) return;
  const bool upper = (folded.rank() & distance) != 0;
  const int partner = folded.peer(folded.rank() ^ distance);
  const Array mine = chunk_of(numbers, upper, 2), other = chunk_of(numbers, !upper, 2);
  segments.exchange_and_add(peers, partner, other, partner, mine);
  halve_and_double(peers, folded, distance / 2, segments, mine);
  peers.exchange(partner, mine.bytes(), partner, other.bytes());
}

/// Rabenseifner: recursive halving, then recursive doubling: 2 log2 P steps, 2 n (P - 1) / P bytes
/// a rank (2 n more where ranks fold). Rabenseifner, "Optimization of collective reduction
/// operations", 2004.
void sum_by_halving(PointToPoint& peers, Segments& segments, const Array& numbers) {
  Folded folded(peers);
  folded.fold(segments, numbers);
  if (folded.takes_part()) {
    halve_and_double(peers, folded, folded.size() / 2, segments, numbers);
  }
  folded.unfold(numbers);
}

/// Binomial tree to rank 0 and back: 2 log2 P steps, up to n log2 P bytes each way through rank 0.
/// Few messages, and the shape does not change where ranks without a contribution are added.
void sum_in_tree(PointToPoint& peers, Segments& segments, const Array& numbers) {
  const int rank = peers.rank(), size = peers.size();
  // A rank receives from those at distances 1, 2, 4, ... until its own lowest bit, then sends.
  int distance = 1;
  for (; distance < size && rank % (2 * distance) == 0; distance *= 2) {
    if (rank + distance < size) segments.receive_and_add(peers, rank + distance, numbers);
  }
  if (rank > 0) {
    segments.send(peers, rank - distance, numbers);
    peers.receive(rank - distance, numbers.bytes());
  }
  for (distance /= 2; distance > 0; distance /= 2) {
    if (rank + distance < size) peers.send(rank + distance, numbers.bytes());
  }
}

/// One rank receives from all others, adds in rank order and sends the result back: 2 steps for the
/// others, 2 (P - 1) n bytes through rank 0. There for comparison.
void sum_on_server(PointToPoint& peers, Segments& segments, const Array& numbers) {
  if (peers.rank() > 0) {
    segments.send(peers, 0, numbers);
    return peers.receive(0, numbers.bytes());
  }
  for (int rank = 1; rank < peers.size(); ++rank) segments.receive_and_add(peers, rank, numbers);
  for (int rank = 1; rank < peers.size(); ++rank) peers.send(rank, numbers.bytes());
}

/// One of these, with the memory for what is received.
class SumByMessages final : public Allreduce {
 public:
  using Algorithm = void (*)(PointToPoint&, Segments&, const Array&);
  SumByMessages(PointToPoint& peers, Algorithm algorithm) : peers_(peers), algorithm_(algorithm) {}
  void sum(const Array& numbers) override { algorithm_(peers_, segments_, numbers); }

 private:
  PointToPoint& peers_;
  Algorithm algorithm_;
  Segments segments_;
};

}  // namespace

void sum_plainly(std::span<const Array> src, const Array& dst) {
  assert(!src.empty());
  if (src.size() == 1 && src[0].data == dst.data) return;
  if (dst.dtype == DType::f32) {
    sum<float>(src, dst);
  } else {
    sum<double>(src, dst);
  }
}

Array Segments::received(std::size_t elements, DType dtype) {
  if (!memory_) memory_ = std::make_unique_for_overwrite<std::byte[]>(kBytes);
  return {memory_.get(), elements, dtype};
}

void Segments::exchange_and_add(PointToPoint& peers, int to, const Array& out, int from,
                                const Array& in) {
  const std::size_t most = kBytes / size_of(in.dtype);
  for (std::size_t begin = 0; begin < std::max(out.size, in.size); begin += most) {
    const auto segment = [&](const Array& array) {
      return array.slice(std::min(begin, array.size), std::min(begin + most, array.size));
    };
    const Array mine = segment(in), theirs = received(mine.size, in.dtype);
    peers.exchange(to, segment(out).bytes(), from, theirs.bytes());
    peers.add(mine, theirs);
  }
}

std::unique_ptr<Allreduce> make_ring(PointToPoint& peers) {
  return std::make_unique<SumByMessages>(peers, sum_in_ring);
}

std::unique_ptr<Allreduce> make_recursive_doubling(PointToPoint& peers) {
  return std::make_unique<SumByMessages>(peers, sum_by_doubling);
}

std::unique_ptr<Allreduce> make_rabenseifner(PointToPoint& peers) {
  return std::make_unique<SumByMessages>(peers, sum_by_halving);
}

std::unique_ptr<Allreduce> make_tree(PointToPoint& peers) {
  return std::make_unique<SumByMessages>(peers, sum_in_tree);
}

std::unique_ptr<Allreduce> make_server(PointToPoint& peers) {
  return std::make_unique<SumByMessages>(peers, sum_on_server);
}

}  // namespace cputrain::comm
