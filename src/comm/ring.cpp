// Ring: 2 (P - 1) steps, 2 n (P - 1) / P bytes a rank. Patarasuk and Yuan, "Bandwidth optimal
// all-reduce algorithms for clusters of workstations", 2009.
#include "comm/allreduce.h"
#include "comm/segments.h"

namespace cputrain::comm {
namespace {

class Ring final : public Allreduce {
 public:
  explicit Ring(Peers& peers) : peers_(peers) {}

  void sum(const Array& numbers) override {
    const int size = peers_.size(), rank = peers_.rank();
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    const auto chunk = [&](int i) { return chunk_of(numbers, (i + size) % size, size); };
    // A chunk goes round once and grows by what each rank has; chunk rank + 1 ends here, complete.
    for (int step = 0; step + 1 < size; ++step) {
      segments_.exchange_and_add(peers_, next, chunk(rank - step), before, chunk(rank - step - 1));
    }
    for (int step = 0; step + 1 < size; ++step) {
      peers_.exchange(next, chunk(rank + 1 - step).bytes(), before, chunk(rank - step).bytes());
    }
  }

 private:
  Peers& peers_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_ring(Peers& peers) { return std::make_unique<Ring>(peers); }

}  // namespace cputrain::comm
