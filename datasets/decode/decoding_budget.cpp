#include "datasets/decode/decoding_budget.h"

namespace cputrain::datasets {

DecodingBudget::Claim::Claim(DecodingBudget& budget) : budget_(budget) {
  const std::lock_guard lock(budget_.mutex_);
  number_ = budget_.next_++;
  budget_.claims_.insert(number_);
}

DecodingBudget::Claim::~Claim() {
  {
    const std::lock_guard lock(budget_.mutex_);
    budget_.in_use_ -= bytes_;
    budget_.claims_.erase(number_);
  }
  budget_.changed_.notify_all();
}

void DecodingBudget::Claim::grow(std::size_t bytes) {
  std::unique_lock lock(budget_.mutex_);
  budget_.changed_.wait(lock, [&] {
    return *budget_.claims_.begin() == number_ || budget_.in_use_ + bytes <= budget_.budget_;
  });
  budget_.in_use_ += bytes;
  bytes_ += bytes;
}

}  // namespace cputrain::datasets
