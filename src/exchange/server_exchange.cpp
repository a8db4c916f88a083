#include <vector>

#include "comm/segments.h"
#include "exchange/exchanges.h"
#include "system/clock.h"
#include "system/pages.h"

namespace cputrain::exchange {
namespace {

class ServerExchange final : public GradientExchange {
 public:
  explicit ServerExchange(const ExchangeParts& parts)
      : communicator_(parts.communicator),
        peers_(parts.communicator.make_peers()),
        weights_(parts.layout.arena_size * size_of(parts.layout.dtype)),
        gradients_(parts.layout.gradient_size * size_of(parts.layout.dtype)),
        arenas_{{weights_.bytes().data(), parts.layout.arena_size, parts.layout.dtype},
                {gradients_.bytes().data(), parts.layout.gradient_size, parts.layout.dtype}} {
    if (serves()) owned_.push_back({0, parts.layout.gradient_size});
  }

  compute::Arenas arenas() const override { return arenas_; }
  std::span<const Range> owned() const override { return owned_; }
  compute::Accumulate begin(int k, bool) override {
    return k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add;
  }
  void ready(std::size_t) override {}

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    ExchangeTimes times;
    system::Stopwatch watch;
    communicator_.barrier();
    times.straggler_wait = watch.lap();
    collect();
    times.allreduce_exposed = watch.lap();
    times.waits = times.straggler_wait + times.allreduce_exposed;
    for (const Measure& measure : measures) communicator_.sum(Array::of(measure()));
    for (const Range& range : owned_) update(range);
    times.optimizer = watch.lap();
    distribute();
    const double distributes = watch.lap();
    times.allreduce_exposed += distributes;
    times.waits += distributes;
    return times;
  }

  void spread_weights() override { communicator_.broadcast(arenas_.weights.bytes(), 0); }
  std::uint64_t weights_version() const override { return 0; }
  ExchangeMemory memory() const override {
    return {weights_.bytes().size() + gradients_.bytes().size(), 0, weights_.bytes().size()};
  }
  std::string describe() const override { return "a parameter server on rank 0"; }

 private:
  bool serves() const { return communicator_.rank() == 0; }

  void collect() {
    const Array& mine = arenas_.gradients;
    if (!serves()) return segments_.send(*peers_, 0, mine);
    for (int rank = 1; rank < peers_->size(); ++rank) {
      segments_.receive_and_add(*peers_, rank, mine);
    }
  }

  /// Only what is learnt: the rest is each rank's own.
  void distribute() {
    const Array learnt = arenas_.weights.slice(0, arenas_.gradients.size);
    if (!serves()) return peers_->receive(0, learnt.bytes());
    for (int rank = 1; rank < peers_->size(); ++rank) peers_->send(rank, learnt.bytes());
  }

  comm::Communicator& communicator_;
  std::unique_ptr<comm::Peers> peers_;
  system::Pages weights_, gradients_;
  compute::Arenas arenas_;
  std::vector<Range> owned_;
  comm::Segments segments_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_server_exchange(const ExchangeParts& parts) {
  return std::make_unique<ServerExchange>(parts);
}

}  // namespace cputrain::exchange
