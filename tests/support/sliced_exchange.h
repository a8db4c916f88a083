#pragma once

#include <vector>

#include "comm/communicator.h"
#include "data/batch_plan.h"
#include "exchange/exchange.h"
#include "system/pages.h"

namespace cputrain {

/// An exchange in which each rank owns a slice of the arena, wherever that cuts a parameter: what a
/// shared-memory reduction will do, in its plainest form.
class SlicedExchange final : public GradientExchange {
 public:
  SlicedExchange(Communicator& communicator, const ParameterLayout& layout)
      : communicator_(communicator),
        weights_(layout.arena_size * size_of(layout.dtype)),
        gradients_(layout.gradient_size * size_of(layout.dtype)),
        arenas_{{weights_.bytes().data(), layout.arena_size, layout.dtype},
                {gradients_.bytes().data(), layout.gradient_size, layout.dtype}},
        owned_{share(layout.gradient_size, communicator.rank(), communicator.size())} {}

  Arenas arenas() const override { return arenas_; }
  std::span<const Range> owned() const override { return owned_; }
  Accumulate begin(int k, bool) override {
    return k == 0 ? Accumulate::overwrite : Accumulate::add;
  }
  void ready(std::size_t) override {}
  void spread_weights() override { communicator_.broadcast(arenas_.weights.bytes(), 0); }
  std::uint64_t weights_version() const override { return 0; }
  ExchangeMemory memory() const override { return {}; }
  std::string describe() const override { return "slices"; }

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    communicator_.sum(arenas_.gradients);
    for (const Measure& measure : measures) communicator_.sum(Array::of(measure()));
    for (const Range& range : owned_) update(range);
    for (int rank = 0; rank < communicator_.size(); ++rank) {
      const Range part = share(arenas_.gradients.size, rank, communicator_.size());
      communicator_.broadcast(arenas_.weights.slice(part.begin, part.end).bytes(), rank);
    }
    return {};
  }

 private:
  Communicator& communicator_;
  Pages weights_, gradients_;
  Arenas arenas_;
  std::vector<Range> owned_;
};

}  // namespace cputrain
