// A replica on every device, whose gradients the devices sum by themselves: as part of the last
// backward pass of a step, bucket by bucket beside it, so that the host neither waits nor calls.
#include <utility>
#include <vector>

#include "exchange/basic_exchange.h"
#include "exchange/broadcast_array.h"
#include "exchange/exchanges.h"

namespace cputrain::exchange {
namespace {

std::size_t longest(const std::vector<std::size_t>& ends) {
  std::size_t most = 0, begin = 0;
  for (const std::size_t end : ends) most = std::max(most, end - std::exchange(begin, end));
  return most;
}

class DeviceExchange final : public BasicExchange, private compute::PassSums {
 public:
  DeviceExchange(const ExchangeParts& parts, compute::DeviceSums& sums, compute::Travel travel)
      : BasicExchange(parts.communicator),
        memory_(parts.memory),
        library_(sums.facts().library),
        travel_(travel),
        weights_(memory_, parts.layout.arena_size, parts.layout.dtype),
        gradients_(memory_, parts.layout.gradient_size, parts.layout.dtype),
        ends_(bucket_ends(parts.layout, parts.bucket_bytes)),
        sum_(sums.make(parts.communicator, travel, longest(ends_))) {
    owned_.push_back({0, parts.layout.gradient_size});
  }

  compute::Arenas arenas() const override { return {weights_.array(), gradients_.array()}; }
  compute::PassSums* pass_sums() override { return this; }
  bool sums_in_backward() const override { return true; }
  void spread_weights() override { broadcast_array(communicator_, memory_, weights_.array(), 0); }
  std::uint64_t weights_version() const override { return 0; }  // nobody else changes them
  ExchangeMemory memory() const override {
    return {weights_.bytes() + gradients_.bytes() + sum_->memory(), 0, weights_.bytes(), 0};
  }
  std::string describe() const override {
    const bool narrow = travel_ == compute::Travel::bf16;
    return "a replica on every device, summed by " + library_ + " beside backward" +
           (narrow ? ", gradients as bf16: 2.0 times fewer bytes" : "");
  }

 private:
  /// Ranks that are late hold up the devices, and the host when it asks for a loss.
  void meet() override { sum_->started(); }

  void enqueue(std::size_t n) override {
    while (next_ < ends_.size() && ends_[next_] <= n) {
      const std::size_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
      sum_->enqueue(gradients_.array().slice(begin, ends_[next_++]));
    }
  }
  void join() override {
    next_ = 0;
    sum_->join();
  }

  compute::Memory& memory_;
  std::string library_;
  compute::Travel travel_;
  compute::OwnedArray weights_, gradients_;
  std::vector<std::size_t> ends_;  ///< of buckets
  std::size_t next_ = 0;           ///< bucket of the pass that is being enqueued
  std::unique_ptr<compute::DeviceSum> sum_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_device_exchange(const ExchangeParts& parts,
                                                       compute::DeviceSums& sums,
                                                       compute::Travel travel) {
  return std::make_unique<DeviceExchange>(parts, sums, travel);
}

}  // namespace cputrain::exchange
