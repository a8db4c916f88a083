#pragma once

#include <functional>
#include <memory>

#include "exchange/exchange.h"
#include "tests/support/locked_backend.h"

namespace cputrain::testing {

/// An exchange whose arenas are locked while it is at work and open to its caller, who stands for
/// the backend: written gradients, measures and updates are a backend's work.
class LockedExchange final : public exchange::GradientExchange {
 public:
  explicit LockedExchange(
      const std::function<std::unique_ptr<exchange::GradientExchange>(compute::Memory&)>& make_in) {
    exchange_ = make_in(*memory_);
    unlocked_ = std::make_unique<LockedMemory::Unlocked>(*memory_);
  }

  compute::Arenas arenas() const override { return exchange_->arenas(); }
  compute::Arenas lane_arenas(int lane) const override { return exchange_->lane_arenas(lane); }
  std::span<const Range> owned() const override { return exchange_->owned(); }
  compute::Accumulate begin(int k, bool last) override {
    const LockedMemory::Locked locked(*memory_);
    return exchange_->begin(k, last);
  }
  using exchange::GradientExchange::ready;
  void ready(std::size_t n, compute::Event* after) override {
    const LockedMemory::Locked locked(*memory_);
    exchange_->ready(n, after);
  }
  using exchange::GradientExchange::finish;
  exchange::ExchangeTimes finish(std::span<const exchange::Measure> measures,
                                 const std::function<void(Range)>& update) override {
    const LockedMemory::Locked locked(*memory_);
    std::vector<exchange::Measure> by_backend;
    for (const exchange::Measure& measure : measures) {
      by_backend.push_back([this, &measure] {
        const LockedMemory::Unlocked unlocked(*memory_);
        return measure();
      });
    }
    return exchange_->finish(by_backend, [&](Range range) {
      const LockedMemory::Unlocked unlocked(*memory_);
      update(range);
    });
  }
  void change_weights(const std::function<void(Range)>& change) override {
    const LockedMemory::Locked locked(*memory_);
    exchange_->change_weights([&](Range range) {
      const LockedMemory::Unlocked unlocked(*memory_);
      change(range);
    });
  }
  void spread_weights() override {
    const LockedMemory::Locked locked(*memory_);
    exchange_->spread_weights();
  }
  std::uint64_t weights_version() const override { return exchange_->weights_version(); }
  exchange::KeptParts* kept_parts() override { return exchange_->kept_parts(); }
  exchange::ExchangeMemory memory() const override { return exchange_->memory(); }
  std::string describe() const override { return exchange_->describe(); }

 private:
  std::unique_ptr<LockedMemory> memory_ = std::make_unique<LockedMemory>();
  std::unique_ptr<exchange::GradientExchange> exchange_;
  std::unique_ptr<LockedMemory::Unlocked> unlocked_;  ///< the caller's
};

}  // namespace cputrain::testing
