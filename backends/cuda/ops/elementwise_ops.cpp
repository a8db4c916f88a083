#include "backends/cuda/ops/elementwise_ops.h"

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

ReluOp::ReluOp(const Planning& planning, int op, const model::Graph::Node& node,
               const Activation& activation)
    : InPlaceOp(planning, op, activation, planning, node.name, "in place"),
      capped_(std::holds_alternative<model::Relu6>(node.layer)) {
  if (activation.wants_diff) planning.memory.use(activation.value, planning.backward_time(op));
}

void ReluOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    (capped_ ? relu6_forward : relu_forward)(stream(), numbers(),
                                             activation_.count(execution.images), value_);
  });
}

/// Operators behind this one may have changed it in place, but never a number's sign; and where it
/// is capped nothing but that (TrackedActivation::numbers_matter).
void ReluOp::backward(const Execution& execution) {
  if (!diff_) return;
  timed(data_time_, [&] {
    (capped_ ? relu6_backward : relu_backward)(stream(), numbers(),
                                               activation_.count(execution.images), value_, diff_);
  });
}

SiluOp::SiluOp(const Planning& planning, int op, const model::Graph::Node& node, const Source& src,
               const Activation& dst)
    : UnaryOp(planning, op, src, dst, planning, node.name, "number by number") {
  if (src.wants_diff) planning.memory.use(src.value, planning.backward_time(op));
}

void SiluOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    silu_forward(stream(), numbers(), dst_.count(execution.images), src_data_, dst_data_);
  });
}

void SiluOp::backward(const Execution& execution) {
  if (!src_diff_) return;
  timed(data_time_, [&] {
    silu_backward(stream(), numbers(), dst_.count(execution.images), src_data_, dst_diff_,
                  src_diff_, src_.adds);
  });
}

DropoutOp::DropoutOp(const Planning& planning, int op, const model::Graph::Node& node,
                     const Activation& activation)
    : InPlaceOp(planning, op, activation, planning, node.name, "drawn by counter, in place"),
      rate_(std::get<model::Dropout>(node.layer).rate),
      layer_(static_cast<std::uint32_t>(node.origin)),
      facts_(planning.facts) {}

void DropoutOp::forward(const Execution& execution) {
  if (execution.pass.phase != compute::Phase::train || rate_ == 0) return;
  timed(forward_time_, [&] { apply(execution, value_); });
}

void DropoutOp::backward(const Execution& execution) {
  if (!diff_ || rate_ == 0) return;
  timed(data_time_, [&] { apply(execution, diff_); });
}

void DropoutOp::apply(const Execution& execution, void* values) const {
  dropout(stream(), numbers(),
          {.rate = rate_,
           .layer = layer_,
           .images = execution.images,
           .positions = activation_.layout.shape.height * activation_.layout.shape.width,
           .channels = activation_.layout.shape.channels},
          facts_, values);
}

}  // namespace cputrain::cuda
