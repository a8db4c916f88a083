#include "backends/cuda/ops/elementwise_ops.h"

#include "backends/cuda/kernels/elementwise.h"

namespace cputrain::cuda {

ReluOp::ReluOp(const Planning& planning, int op, const model::Graph::Node& node, const Map& map)
    : Op(node.name, "in place"), map_(map) {
  planning.memory.use(map.value, planning.forward_time(op));
  if (!map.wants_diff) return;
  planning.memory.use(map.value, planning.backward_time(op));
  planning.memory.use(map.diff, planning.backward_time(op));
}

void ReluOp::bind(const Bindings& bindings) {
  value_ = bindings.value(map_);
  diff_ = bindings.diff(map_);
}

void ReluOp::forward(const Execution& execution) {
  timed(forward_time_, execution.stream,
        [&] { relu_forward(execution.stream, map_.count(execution.images), value_); });
}

/// Ops behind this one may have changed the map in place, but never a number's sign.
void ReluOp::backward(const Execution& execution) {
  if (!diff_) return;
  timed(data_time_, execution.stream,
        [&] { relu_backward(execution.stream, map_.count(execution.images), value_, diff_); });
}

DropoutOp::DropoutOp(const Planning& planning, int op, const model::Graph::Node& node,
                     const Map& map)
    : Op(node.name, "drawn by counter, in place"),
      map_(map),
      rate_(std::get<model::Dropout>(node.layer).rate),
      layer_(static_cast<std::uint32_t>(node.origin)) {
  planning.memory.use(map.value, planning.forward_time(op));
  if (map.wants_diff) planning.memory.use(map.diff, planning.backward_time(op));
}

void DropoutOp::bind(const Bindings& bindings) {
  value_ = bindings.value(map_);
  diff_ = bindings.diff(map_);
}

void DropoutOp::forward(const Execution& execution) {
  if (execution.pass.phase != compute::Phase::train || rate_ == 0) return;
  timed(forward_time_, execution.stream, [&] { apply(execution, value_); });
}

void DropoutOp::backward(const Execution& execution) {
  if (!diff_ || rate_ == 0) return;
  timed(data_time_, execution.stream, [&] { apply(execution, diff_); });
}

void DropoutOp::apply(const Execution& execution, float* map) const {
  dropout(execution.stream,
          {.rate = rate_,
           .seed = execution.pass.seed,
           .step = execution.pass.step,
           .layer = layer_,
           .images = execution.images,
           .positions = map_.shape.height * map_.shape.width,
           .channels = map_.shape.channels,
           .samples = execution.samples},
          map);
}

}  // namespace cputrain::cuda
