#pragma once

#include <vector>

#include "data/batch_plan.h"
#include "data/batch_source.h"

namespace cputrain::sim {

/// Micro-batches of the right sizes without an image in them, at once.
class NoPixels final : public data::BatchSource {
 public:
  explicit NoPixels(const data::BatchPlan& plan);
  void seek(int epoch, std::size_t step) override;
  const compute::MicroBatch& next() override;

 private:
  const data::BatchPlan& plan_;
  std::size_t step_ = 0;
  int micro_batch_ = 0;
  std::vector<const std::uint8_t*> images_;
  std::vector<std::int32_t> labels_;
  std::vector<std::uint32_t> samples_;
  compute::MicroBatch batch_;
};

}  // namespace cputrain::sim
