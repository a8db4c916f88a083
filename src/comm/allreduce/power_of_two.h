#pragma once

#include <bit>

#include "comm/allreduce/sum_arrays.h"

namespace cputrain::comm {

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

}  // namespace cputrain::comm
