#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "exchange/basic_exchange.h"
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

/// A replica on every device, whose gradients the devices sum by themselves: as part of the last
/// backward pass of a step, bucket by bucket beside it, so that the host neither waits nor calls.
class DeviceExchange final : public BasicExchange {
 public:
  DeviceExchange(const ExchangeParts& parts, compute::DeviceSums& sums, bool narrow)
      : BasicExchange(parts.communicator),
        memory_(parts.memory),
        library_(sums.facts().library),
        narrow_(narrow),
        weights_(memory_, parts.layout.arena_size, parts.layout.dtype),
        gradients_(memory_, parts.layout.gradient_size, parts.layout.dtype),
        ends_(bucket_ends(parts.layout, parts.bucket_bytes)),
        sum_(sums.make(parts.communicator, narrow, longest_bucket(ends_))) {
    owned_.push_back({0, parts.layout.gradient_size});
  }

  compute::Arenas arenas() const override { return {weights_.array(), gradients_.array()}; }
  /// A rank without images has no pass that a device could repeat, so no rank has one then.
  const compute::PassSums* pass_sums(std::span<const std::size_t> images) override {
    in_pass_ = std::ranges::find(images, 0u) == images.end();
    if (!in_pass_) return nullptr;
    const std::vector<std::size_t> of_ranks(images.begin(), images.end());
    return &passes_.try_emplace(of_ranks, [this](std::size_t n) { enqueue(n); }).first->second;
  }
  bool sums_in_backward() const override { return in_pass_; }
  void spread_weights() override { broadcast_array(communicator_, memory_, weights_.array(), 0); }
  std::uint64_t weights_version() const override { return 0; }  // only this rank changes them
  ExchangeMemory memory() const override {
    return {.own = weights_.bytes() + gradients_.bytes() + sum_->memory(),
            .own_weights = weights_.bytes(),
            .library = sum_->library_memory()};
  }
  std::string describe() const override {
    return "a replica on every device, summed by " + library_ + " beside backward" +
           (narrow_ ? ", gradients as bf16: 2.0 times fewer bytes" : "");
  }

 private:
  /// Ranks that are late hold up the devices, and the host when it asks for a loss.
  void meet() override {
    if (!in_pass_) enqueue(gradients_.array().size);
    sum_->started();
  }

  void enqueue(std::size_t n) {
    while (next_ < ends_.size() && ends_[next_] <= n) {
      const std::size_t begin = next_ == 0 ? 0 : ends_[next_ - 1];
      sum_->enqueue(gradients_.array().slice(begin, ends_[next_++]));
    }
    if (n < gradients_.array().size) return;
    next_ = 0;
    sum_->join();
  }

  compute::Memory& memory_;
  std::string library_;
  bool narrow_;
  compute::OwnedArray weights_, gradients_;
  std::vector<std::size_t> ends_;  ///< the buckets'
  std::size_t next_ = 0;           ///< bucket of the pass that is being enqueued
  bool in_pass_ = false;           ///< the sums of this step are part of its last backward pass
  /// By images of ranks: passes that all ranks have together, and repeat together.
  std::map<std::vector<std::size_t>, compute::PassSums> passes_;
  std::unique_ptr<compute::DeviceSum> sum_;
};

}  // namespace

std::unique_ptr<GradientExchange> make_replica_exchange(const ExchangeParts& parts,
                                                        std::unique_ptr<GradientSum> sum) {
  return std::make_unique<ReplicaExchange>(parts, std::move(sum));
}

std::unique_ptr<GradientExchange> make_device_exchange(const ExchangeParts& parts,
                                                       compute::DeviceSums& sums, bool narrow) {
  return std::make_unique<DeviceExchange>(parts, sums, narrow);
}

}  // namespace cputrain::exchange
