// Binomial tree to rank 0 and back: 2 log2 P steps, up to n log2 P bytes each way through rank 0.
// Few messages, and the shape does not change where ranks without a contribution are added.
#include "comm/allreduce.h"
#include "comm/allreduce/sum_arrays.h"

namespace cputrain::comm {
namespace {

class Tree final : public Allreduce {
 public:
  explicit Tree(PointToPoint& peers) : peers_(peers) {}

  void sum(const Array& numbers) override {
    const int rank = peers_.rank(), size = peers_.size();
    // A rank receives from those at distances 1, 2, 4, ... until its own lowest bit, then sends.
    int distance = 1;
    for (; distance < size && rank % (2 * distance) == 0; distance *= 2) {
      if (rank + distance < size) segments_.receive_and_add(peers_, rank + distance, numbers);
    }
    if (rank > 0) {
      segments_.send(peers_, rank - distance, numbers);
      peers_.receive(rank - distance, numbers.bytes());
    }
    for (distance /= 2; distance > 0; distance /= 2) {
      if (rank + distance < size) peers_.send(rank + distance, numbers.bytes());
    }
  }

 private:
  PointToPoint& peers_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_tree(PointToPoint& peers) { return std::make_unique<Tree>(peers); }

}  // namespace cputrain::comm
