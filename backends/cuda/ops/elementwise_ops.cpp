#include "backends/cuda/ops/elementwise_ops.h"

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

ReluOp::ReluOp(const Planning& planning, int op, const model::Graph::Node& node,
               const Activation& activation)
    : InPlaceOp(planning, op, activation, planning, node.name, "in place") {
  if (activation.wants_diff) planning.memory.use(activation.value, planning.backward_time(op));
}

void ReluOp::forward(const Execution& execution) {
  timed(forward_time_,
        [&] { relu_forward(stream(), numbers(), activation_.count(execution.images), value_); });
}

/// Operators behind this one may have changed it in place, but never a number's sign.
void ReluOp::backward(const Execution& execution) {
  if (!diff_) return;
  timed(data_time_, [&] {
    relu_backward(stream(), numbers(), activation_.count(execution.images), value_, diff_);
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
