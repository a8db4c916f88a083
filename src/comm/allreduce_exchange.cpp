#include "comm/allreduce_exchange.h"

#include <array>
#include <cassert>
#include <utility>

#include "comm/pages.h"
#include "core/clock.h"

namespace cputrain {

namespace {

class AllreduceExchange final : public GradientExchange {
 public:
  AllreduceExchange(const ExchangePlan& plan, std::unique_ptr<TravellingSums> sums)
      : weights_(plan.layout.arena_size * size_of(plan.layout.dtype)),
        gradients_(plan.layout.gradient_size * size_of(plan.layout.dtype)),
        arenas_{{weights_.bytes().data(), plan.layout.arena_size, plan.layout.dtype},
                {gradients_.bytes().data(), plan.layout.gradient_size, plan.layout.dtype}},
        owned_{Range{0, plan.layout.gradient_size}},
        ends_(bucket_ends(plan)),
        sums_(std::move(sums)) {}

  Arenas arenas() const override { return arenas_; }
  std::span<const Range> owned() const override { return owned_; }

  void ready(std::size_t n) override {
    assert(ready_ <= n && n <= arenas_.gradients.size);
    ready_ = n;
    for (; started_ < ends_.size() && ends_[started_] <= n; ++started_) {
      const std::size_t begin = started_ == 0 ? 0 : ends_[started_ - 1];
      sums_->start(arenas_.gradients.slice(begin, ends_[started_]));
    }
    sums_->progress();
  }

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    assert(ready_ == arenas_.gradients.size);
    ExchangeTimes times;
    Stopwatch watch;
    sums_->meet();
    times.straggler_wait = watch.lap();
    sums_->wait();
    times.allreduce_exposed = watch.lap();
    for (const Measure& measure : measures) measure();  // whole: every rank owns everything
    for (const Range& range : owned_) update(range);
    times.optimizer = watch.lap();
    ready_ = 0;
    started_ = 0;
    return times;
  }

 private:
  Pages weights_, gradients_;
  Arenas arenas_;
  std::array<Range, 1> owned_;
  std::vector<std::size_t> ends_;
  std::size_t ready_ = 0;
  std::size_t started_ = 0;               // buckets of this step that travel or have arrived
  std::unique_ptr<TravellingSums> sums_;  // last: it lets go of the arenas before they are freed
};

}  // namespace

std::unique_ptr<GradientExchange> make_allreduce_exchange(const ExchangePlan& plan,
                                                          std::unique_ptr<TravellingSums> sums) {
  return std::make_unique<AllreduceExchange>(plan, std::move(sums));
}

}  // namespace cputrain
