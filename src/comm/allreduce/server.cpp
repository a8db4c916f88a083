// One rank receives from all others, adds in rank order and sends the result back: 2 steps for the
// others, 2 (P - 1) n bytes through rank 0. There for comparison.
#include "comm/allreduce.h"
#include "comm/allreduce/sum_arrays.h"

namespace cputrain::comm {
namespace {

class Server final : public Allreduce {
 public:
  explicit Server(PointToPoint& peers) : peers_(peers) {}

  void sum(const Array& numbers) override {
    if (peers_.rank() > 0) {
      segments_.send(peers_, 0, numbers);
      return peers_.receive(0, numbers.bytes());
    }
    for (int rank = 1; rank < peers_.size(); ++rank) {
      segments_.receive_and_add(peers_, rank, numbers);
    }
    for (int rank = 1; rank < peers_.size(); ++rank) peers_.send(rank, numbers.bytes());
  }

 private:
  PointToPoint& peers_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Allreduce> make_server(PointToPoint& peers) {
  return std::make_unique<Server>(peers);
}

}  // namespace cputrain::comm
