#include "comm/allreduce.h"
#include "exchange/basic_exchange.h"
#include "exchange/exchanges.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

class ServerExchange final : public BasicExchange {
 public:
  explicit ServerExchange(const ExchangeParts& parts)
      : BasicExchange(parts.communicator),
        peers_(parts.communicator.make_point_to_point()),
        weights_(parts.layout.arena_size * size_of(parts.layout.dtype)),
        gradients_(parts.layout.gradient_size * size_of(parts.layout.dtype)),
        arenas_{{weights_.bytes().data(), parts.layout.arena_size, parts.layout.dtype},
                {gradients_.bytes().data(), parts.layout.gradient_size, parts.layout.dtype}} {
    if (serves()) owned_.push_back({0, parts.layout.gradient_size});
  }

  compute::Arenas arenas() const override { return arenas_; }
  void spread_weights() override { communicator_.broadcast(arenas_.weights.bytes(), 0); }
  std::uint64_t weights_version() const override { return 0; }
  ExchangeMemory memory() const override {
    return {weights_.bytes().size() + gradients_.bytes().size(), 0, weights_.bytes().size()};
  }
  std::string describe() const override { return "a parameter server on rank 0"; }

 private:
  bool serves() const { return communicator_.rank() == 0; }

  double reduce() override {
    const Array& mine = arenas_.gradients;
    if (!serves()) segments_.send(*peers_, 0, mine);
    for (int rank = 1; serves() && rank < peers_->size(); ++rank) {
      segments_.receive_and_add(*peers_, rank, mine);
    }
    return 0;
  }
  void sum_over_owners(const Array& numbers) override { communicator_.sum(numbers); }

  /// Only what is learnt: the rest is each rank's own.
  void await_weights() override {
    const Array learnt = arenas_.weights.slice(0, arenas_.gradients.size);
    if (!serves()) return peers_->receive(0, learnt.bytes());
    for (int rank = 1; rank < peers_->size(); ++rank) peers_->send(rank, learnt.bytes());
  }

  std::unique_ptr<comm::PointToPoint> peers_;
  system::Pages weights_, gradients_;
  compute::Arenas arenas_;
  comm::Segments segments_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_server_exchange(const ExchangeParts& parts) {
  return std::make_unique<ServerExchange>(parts);
}

}  // namespace cputrain::exchange
