// Ring: 2 (P - 1) steps, 2 n (P - 1) / P bytes a rank. Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009.
#include "comm/allreduce.h"
#include "comm/allreduce/sum_arrays.h"

namespace cputrain::comm {
namespace {

class Ring final : public Allreduce {
 public:
  explicit Ring(PointToPoint& peers) : peers_(peers) {}

  void sum(const Array& numbers) override {
    const int size = peers_.size(), rank = peers_.rank();
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const auto chunk = [&](int i) { return chunk_of(numbers, (i + size) % size, size); };
    // Reduce-scatter: a chunk goes round once and grows by what each rank has, so chunk rank + 1
    // ends here, complete.
    for (int step = 0; step + 1 < size; ++step) {
      segments_.exchange_and_add(peers_, next, chunk(rank - step), before, chunk(rank - step - 1));
    }
    // Allgather: complete chunks go round once more.
    for (int step = 0; step + 1 < size; ++step) {
      peers_.exchange(next, chunk(rank + 1 - step).bytes(), before, chunk(rank - step).bytes());
    }
  }

 private:
  PointToPoint& peers_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_ring(PointToPoint& peers) { return std::make_unique<Ring>(peers); }

}  // namespace cputrain::comm
