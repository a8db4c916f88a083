#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include "exchange/broadcast_array.h"
#include "exchange/exchanges.h"
#include "system/clock.h"

namespace cputrain::exchange {
namespace {

class ReplicaExchange final : public GradientExchange {
 public:
  ReplicaExchange(const ExchangeParts& parts, std::unique_ptr<GradientSum> sum)
      : communicator_(parts.communicator),
        memory_(parts.memory),
        weights_(memory_, parts.layout.arena_size, parts.layout.dtype),
        gradients_(memory_, parts.layout.gradient_size, parts.layout.dtype),
        owned_{Range{0, parts.layout.gradient_size}},
        sum_(std::move(sum)),
        buckets_(
            bucket_ends(parts.layout, parts.bucket_bytes),
            [this](Range r) { sum_->sum(r, gradients_.array().slice(r.begin, r.end)); },
            parts.overlap, parts.on_thread_start) {}

  compute::Arenas arenas() const override { return {weights_.array(), gradients_.array()}; }
  std::span<const Range> owned() const override { return owned_; }

  compute::Accumulate begin(int k, bool last) override {
    last_ = last;
    return k == 0 ? compute::Accumulate::overwrite : compute::Accumulate::add;
  }

  void ready(std::size_t n) override {
    if (last_) buckets_.ready(n);
  }

  using GradientExchange::finish;
  ExchangeTimes finish(std::span<const Measure> measures,
                       const std::function<void(Range)>& update) override {
    ExchangeTimes times;
    system::Stopwatch watch;
    communicator_.barrier();
    times.straggler_wait = watch.lap();
    buckets_.finish();
    times.allreduce_exposed = watch.lap();
    times.waits = times.straggler_wait + times.allreduce_exposed;
    for (const Measure& measure : measures) measure();  // whole: every rank owns everything
    for (const Range& range : owned_) update(range);
    times.optimizer = watch.lap();
    return times;
  }

  void spread_weights() override { broadcast_array(communicator_, memory_, weights_.array(), 0); }
  std::uint64_t weights_version() const override { return 0; }  // nobody else changes them
  GradientSum* gradient_sum() override { return sum_.get(); }
  ExchangeMemory memory() const override {
    return {weights_.bytes() + gradients_.bytes() + sum_->memory(), 0, weights_.bytes(),
            sum_->memory()};
  }
  std::string describe() const override {
    std::vector<Range> travels;
    for (std::size_t i = 0; i < buckets_.ends().size(); ++i) travels.push_back(buckets_.bucket(i));
    return "a replica on every rank" + describe_volume(*sum_, travels, gradients_.array().dtype);
  }

 private:
  comm::Communicator& communicator_;
  compute::Memory& memory_;
  compute::OwnedArray weights_, gradients_;
  std::array<Range, 1> owned_;
  bool last_ = true;
  std::unique_ptr<GradientSum> sum_;
  Buckets buckets_;  // last: it lets go of the arenas before they are freed
};

}  // namespace

std::unique_ptr<GradientExchange> make_replica_exchange(const ExchangeParts& parts,
                                                        std::unique_ptr<GradientSum> sum) {
  return std::make_unique<ReplicaExchange>(parts, std::move(sum));
}

}  // namespace cputrain::exchange
