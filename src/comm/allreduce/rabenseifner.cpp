// Rabenseifner: recursive halving, then recursive doubling: 2 log2 P steps, 2 n (P - 1) / P bytes a
// rank (2 n more where ranks fold). Rabenseifner, "Optimization of collective reduction
// operations", 2004.
#include <vector>

#include "comm/allreduce.h"
#include "comm/allreduce/power_of_two.h"

namespace cputrain::comm {
namespace {

class Rabenseifner final : public Allreduce {
 public:
  explicit Rabenseifner(PointToPoint& peers) : peers_(peers), folded_(peers) {}

  void sum(const Array& numbers) override {
    folded_.fold(segments_, numbers);
    if (folded_.takes_part()) sum_in_pairs(numbers);
    folded_.unfold(numbers);
  }

 private:
  struct Halves {
    Array mine, other;
  };

  void sum_in_pairs(const Array& numbers) {
    const int rank = folded_.rank();
    // Halving: pairs at the widest distance exchange halves, then narrower ones halves of those,
    // until each rank has the sum of one chunk. Doubling goes the same way back.
    std::vector<Halves> halves;  // by distance, the widest first
    Array mine = numbers;
    for (int distance = folded_.size() / 2; distance > 0; distance /= 2) {
      const bool upper = (rank & distance) != 0;
      halves.push_back({chunk_of(mine, upper, 2), chunk_of(mine, !upper, 2)});
      mine = halves.back().mine;
      const int partner = folded_.peer(rank ^ distance);
      segments_.exchange_and_add(peers_, partner, halves.back().other, partner, mine);
    }
    for (int distance = 1; distance < folded_.size(); distance *= 2, halves.pop_back()) {
      const int partner = folded_.peer(rank ^ distance);
      peers_.exchange(partner, halves.back().mine.bytes(), partner, halves.back().other.bytes());
    }
  }

  PointToPoint& peers_;
  Folded folded_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_rabenseifner(PointToPoint& peers) {
  return std::make_unique<Rabenseifner>(peers);
}

}  // namespace cputrain::comm
