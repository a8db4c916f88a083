#include "backends/cpu/ops/elementwise_steps.h"

#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/random.h"

namespace cputrain::cpu {
namespace {

std::size_t numbers(const Map& map, const Execution& execution) {
  return map.layout.size() * static_cast<std::size_t>(execution.images);
}

}  // namespace

ReluStep::ReluStep(const Planning& planning, int step, const model::Graph::Node& node,
                   const Map& map)
    : map_(map) {
  planning.memory.use(map.value, planning.forward_time(step));
  if (map.wants_diff) {
    planning.memory.use(map.value, planning.backward_time(step));
    planning.memory.use(map.diff, planning.backward_time(step));
  }
  time_.name = node.name;
  time_.algorithm = "in place";
}

void ReluStep::bind(const Bindings& bindings) {
  value_ = bindings.at(map_.value);
  if (map_.wants_diff) diff_ = bindings.at(map_.diff);
}

void ReluStep::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  parallel_ranges(numbers(map_, execution), [&](std::size_t begin, std::size_t end) {
    kernels::relu(value_ + begin, end - begin);
  });
}

void ReluStep::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!diff_) return;
  // Steps behind this one may have changed the map in place, but never an element's sign.
  parallel_ranges(numbers(map_, execution), [&](std::size_t begin, std::size_t end) {
    kernels::relu_backward(value_ + begin, diff_ + begin, end - begin);
  });
}

DropoutStep::DropoutStep(const Planning& planning, int step, const model::Graph::Node& node,
                         const Map& map)
    : map_(map),
      rate_(std::get<model::Dropout>(node.layer).rate),
      scale_(rate_ < 1 ? 1 / (1 - rate_) : 0),
      layer_(static_cast<std::uint32_t>(node.origin)) {
  planning.memory.use(map.value, planning.forward_time(step));
  if (planning.training()) {
    kept_block_ =
        planning.memory.add(map.layout.size() * static_cast<std::size_t>(planning.largest()),
                            planning.forward_time(step));
  }
  if (map.wants_diff) {
    planning.memory.use(kept_block_, planning.backward_time(step));
    planning.memory.use(map.diff, planning.backward_time(step));
  }
  time_.name = node.name;
  time_.algorithm = "in place";
}

void DropoutStep::bind(const Bindings& bindings) {
  value_ = bindings.at(map_.value);
  kept_ = bindings.at<std::uint8_t>(kept_block_);
  if (map_.wants_diff) diff_ = bindings.at(map_.diff);
}

void DropoutStep::draw(const Execution& execution, std::size_t image) {
  const DropoutMask mask(rate_, execution.pass.seed, execution.pass.step, layer_,
                         execution.batch->samples[image]);
  const SampleLayout& layout = map_.layout;
  std::uint8_t* kept = kept_ + image * layout.size();
  if (layout.padded()) std::fill_n(kept, layout.size(), std::uint8_t{0});
  const std::size_t count = layout.shape.size();
  for (std::size_t element = 0; element < count; element += 4) {
    const auto keeps = mask.keeps(static_cast<std::uint32_t>(element / 4));
    for (std::size_t i = 0; i < std::min<std::size_t>(4, count - element); ++i) {
      kept[layout.position(element + i)] = keeps[i];
    }
  }
}

void DropoutStep::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  if (execution.pass.phase != compute::Phase::train) return;
  const std::size_t size = map_.layout.size();
  parallel_for(static_cast<std::size_t>(execution.images), [&](std::size_t image) {
    draw(execution, image);
    kernels::keep(kept_ + image * size, scale_, value_ + image * size, size);
  });
}

void DropoutStep::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!diff_) return;
  parallel_ranges(numbers(map_, execution), [&](std::size_t begin, std::size_t end) {
    kernels::keep(kept_ + begin, scale_, diff_ + begin, end - begin);
  });
}

}  // namespace cputrain::cpu
