#pragma once

#include <vector>

#include "comm/communicator.h"
#include "data/batch_plan.h"
#include "exchange/exchange.h"
#include "system/pages.h"

namespace cputrain::testing {

/// An exchange in which each rank owns a slice of the arena, wherever that cuts a parameter: what a
/// shared-memory reduction will do, in its plainest form.
class SlicedExchange final : public exchange::GradientExchange {
 public:
  SlicedExchange(comm::Communicator& communicator, const compute::ParameterLayout& layout)
      : communicator_(communicator),
        weights_(layout.arena_size * size_of(layout.dtype)),
        gradients_(layout.gradient_size * size_of(layout.dtype)),
        arenas_{{weights_.bytes().data(), layout.arena_size, layout.dtype},
                {gradients_.bytes().data(), layout.gradient_size, layout.dtype}},
        owned_{data::share(layout.gradient_size, communicator.rank(), communicator.size())} {}

  compute::Arenas arenas() const override { return arenas_; }
  std::span<const Range> owned() const override { return owned_; }
  compute::Accumulate begin(int k, bool) override {
    return k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add;
  }
  using exchange::GradientExchange::ready;
  void ready(std::size_t, compute::Event*) override {}
  void spread_weights() override { communicator_.broadcast(arenas_.weights.bytes(), 0); }
  std::uint64_t weights_version() const override { return 0; }
  exchange::ExchangeMemory memory() const override { return {}; }
  std::string describe() const override { return "slices"; }

  using exchange::GradientExchange::finish;
  exchange::ExchangeTimes finish(std::span<const exchange::Measure> measures,
                                 const std::function<void(Range)>& update) override {
    communicator_.sum(arenas_.gradients);
    for (const exchange::Measure& measure : measures) communicator_.sum(Array::of(measure()));
    change_weights(update);
    return {};
  }
  void change_weights(const std::function<void(Range)>& change) override {
    for (const Range& range : owned_) change(range);
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      const Range part = data::share(arenas_.gradients.size, rank, communicator_.size());
      communicator_.broadcast(arenas_.weights.slice(part.begin, part.end).bytes(), rank);
    }
  }

 private:
  comm::Communicator& communicator_;
  system::Pages weights_, gradients_;
  compute::Arenas arenas_;
  std::vector<Range> owned_;
};

}  // namespace cputrain::testing
