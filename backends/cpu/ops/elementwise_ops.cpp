#include "backends/cpu/ops/elementwise_ops.h"

#include <algorithm>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"
#include "core/random/random.h"

namespace cputrain::cpu {

template <class Number>
RectifierOp<Number>::RectifierOp(const Planning& planning, int op, const model::Graph::Node& node,
                                 const model::Rectifier& rectifier, const Activation& activation)
    : InPlace(planning, op, activation, node.name, "in place"), rectifier_(rectifier) {
  if (activation.wants_diff) planning.memory.use(activation.value, planning.backward_time(op));
}

template <class Number>
void RectifierOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  parallel_ranges(activation_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::rectify(rectifier_, value_ + begin, end - begin);
  });
}

template <class Number>
void RectifierOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!diff_) return;
  // Operators behind this one may have changed it in place, but never an element's sign; and where
  // it is capped not even its numbers (TrackedActivation::numbers_matter).
  parallel_ranges(activation_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::rectify_backward(rectifier_, value_ + begin, diff_ + begin, end - begin);
  });
}

template <class Number>
SiluOp<Number>::SiluOp(const Planning& planning, int op, const model::Graph::Node& node,
                       const Source& src, const Activation& dst)
    : Unary(planning, op, src, dst, node.name, "own") {
  if (src.wants_diff) planning.memory.use(src.value, planning.backward_time(op));
}

template <class Number>
void SiluOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  parallel_ranges(dst_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::silu(src_data_ + begin, dst_data_ + begin, end - begin);
  });
}

template <class Number>
void SiluOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!src_diff_) return;
  parallel_ranges(dst_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::silu_backward(src_data_ + begin, dst_diff_ + begin, src_diff_ + begin, src_.adds,
                           end - begin);
  });
}

template <class Number>
DropoutOp<Number>::DropoutOp(const Planning& planning, int op, const model::Graph::Node& node,
                             const Activation& activation)
    : InPlace(planning, op, activation, node.name, "in place"),
      rate_(std::get<model::Dropout>(node.layer).rate),
      scale_(rate_ < 1 ? 1 / (1 - rate_) : 0),
      layer_(static_cast<std::uint32_t>(node.origin)) {
  if (planning.training()) {
    kept_block_ =
        planning.memory.add(activation.count(planning.largest()), planning.forward_time(op));
  }
  if (activation.wants_diff) planning.memory.use(kept_block_, planning.backward_time(op));
}

template <class Number>
void DropoutOp<Number>::bind(const Bindings& bindings) {
  InPlace::bind(bindings);
  kept_ = bindings.at<std::uint8_t>(kept_block_);
}

template <class Number>
void DropoutOp<Number>::draw(const Execution& execution, std::size_t image) {
  const DropoutMask mask(rate_, execution.pass.seed, execution.pass.step, layer_,
                         execution.samples[image]);
  const compute::SampleLayout& layout = activation_.layout;
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

template <class Number>
void DropoutOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  if (execution.pass.phase != compute::Phase::train) return;
  const std::size_t size = activation_.layout.size();
  parallel_for(to_size(execution.images), [&](std::size_t image) {
    draw(execution, image);
    kernels::keep(kept_ + image * size, scale_, value_ + image * size, size);
  });
}

template <class Number>
void DropoutOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!diff_) return;
  parallel_ranges(activation_.count(execution.images), [&](std::size_t begin, std::size_t end) {
    kernels::keep(kept_ + begin, scale_, diff_ + begin, end - begin);
  });
}

template class RectifierOp<float>;
template class RectifierOp<Bf16>;
template class SiluOp<float>;
template class SiluOp<Bf16>;
template class DropoutOp<float>;
template class DropoutOp<Bf16>;

}  // namespace cputrain::cpu
