// Recursive doubling: log2 P steps, n log2 P bytes a rank (2 n more where ranks fold): few
// messages, for short arrays. Thakur, Rabenseifner and Gropp, "Optimization of collective
// communication operations in MPICH", 2005, section 4.5.
#include "comm/allreduce.h"
#include "comm/allreduce/power_of_two.h"

namespace cputrain::comm {
namespace {

class RecursiveDoubling final : public Allreduce {
 public:
  explicit RecursiveDoubling(PointToPoint& peers) : peers_(peers), folded_(peers) {}

  /// After the step at distance d, each group of 2 d ranks has its sum. Partners add a + b and b +
  /// a, which are the same bits.
  void sum(const Array& numbers) override {
    folded_.fold(segments_, numbers);
    for (int distance = 1; folded_.takes_part() && distance < folded_.size(); distance *= 2) {
      const int partner = folded_.peer(folded_.rank() ^ distance);
      segments_.exchange_and_add(peers_, partner, numbers, partner, numbers);
    }
    folded_.unfold(numbers);
  }

 private:
  PointToPoint& peers_;
  Folded folded_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_recursive_doubling(PointToPoint& peers) {
  return std::make_unique<RecursiveDoubling>(peers);
}

}  // namespace cputrain::comm
