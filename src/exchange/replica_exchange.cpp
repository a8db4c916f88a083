#include <utility>
#include <vector>

#include "exchange/basic_exchange.h"
#include "exchange/broadcast_array.h"
#include "exchange/exchanges.h"

namespace cputrain::exchange {
namespace {

class ReplicaExchange final : public BasicExchange {
 public:
  ReplicaExchange(const ExchangeParts& parts, std::unique_ptr<GradientSum> sum)
      : BasicExchange(parts.communicator),
        memory_(parts.memory),
        weights_(memory_, parts.layout.arena_size, parts.layout.dtype),
        gradients_(memory_, parts.layout.gradient_size, parts.layout.dtype),
        sum_(std::move(sum)),
        buckets_(
            bucket_ends(parts.layout, parts.bucket_bytes),
            [this](Range r, compute::Event* after) {
              if (sum_->is_nothing()) return;
              compute::wait_for(after);
              sum_->sum(r, gradients_.array().slice(r.begin, r.end));
            },
            parts.overlap, parts.on_thread_start) {
    owned_.push_back({0, parts.layout.gradient_size});
  }

  compute::Arenas arenas() const override { return {weights_.array(), gradients_.array()}; }

  bool sums_in_backward() const override { return sum_->is_nothing(); }

  void spread_weights() override { broadcast_array(communicator_, memory_, weights_.array(), 0); }
  std::uint64_t weights_version() const override { return 0; }  // only this rank changes them
  KeptParts* kept_parts() override { return sum_->kept_parts(); }
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
  void finish_gradients(std::size_t n, compute::Event* after) override { buckets_.ready(n, after); }
  double reduce() override {
    buckets_.finish();
    return 0;
  }

  compute::Memory& memory_;
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<GradientSum> sum_;
  Buckets buckets_;  // last: it lets go of the arenas before they are freed
};

}  // namespace

std::unique_ptr<GradientExchange> make_replica_exchange(const ExchangeParts& parts,
                                                        std::unique_ptr<GradientSum> sum) {
  return std::make_unique<ReplicaExchange>(parts, std::move(sum));
}

}  // namespace cputrain::exchange
