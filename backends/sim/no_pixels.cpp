#include "backends/sim/no_pixels.h"

#include <algorithm>

#include "core/casts.h"

namespace cputrain::sim {

NoPixels::NoPixels(const data::BatchPlan& plan) : plan_(plan) {
  const auto most = to_size(std::ranges::max(plan.sizes()));
  images_.resize(most);
  labels_.resize(most);
  samples_.resize(most);
}

void NoPixels::seek(int, std::size_t step) {
  step_ = step;
  micro_batch_ = 0;
}

const compute::MicroBatch& NoPixels::next() {
  if (micro_batch_ == plan_.micro_batches(step_)) {
    ++step_;
    micro_batch_ = 0;
  }
  const std::size_t images = plan_.piece(step_, micro_batch_++).size();
  batch_ = {std::span(images_).first(images), std::span(labels_).first(images),
            std::span(samples_).first(images)};
  return batch_;
}

}  // namespace cputrain::sim
