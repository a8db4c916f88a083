#include "backends/cpu/ops/max_pool_op.h"

#include "backends/cpu/kernels/on_threads.h"

namespace cputrain::cpu {

bool MaxPoolOp::possible(const model::MaxPool& layer, const Activation& src) {
  const int block = src.layout.block;
  return !is_narrow(src) && (block == 8 || block == 16) && layer.size <= MaxPoolShape::kLargestSize;
}

MaxPoolOp::MaxPoolOp(const Planning& planning, int op, const model::Graph::Node& node,
                     const Source& src, const Activation& dst)
    : UnaryOp(planning, op, src, dst, node.name),
      shape_(
          MaxPoolShape::of(std::get<model::MaxPool>(node.layer), src.layout, dst.layout, false)) {
  compute::MemoryPlan& memory = planning.memory;
  const auto images = static_cast<std::size_t>(planning.largest());
  const int backward = planning.backward_time(op);
  if (src.wants_diff) {
    winners_block_ = memory.add(images * dst.layout.size(), planning.forward_time(op));
    memory.use(winners_block_, backward);
    if (src.adds) part_block_ = memory.add(src.bytes(planning.largest()), backward);
  }
  time_.algorithm = "own";
}

void MaxPoolOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  if (src_.wants_diff) winners_ = bindings.at<std::uint8_t>(winners_block_);
  if (src_.adds && src_.wants_diff) part_ = bindings.at<float>(part_block_);
}

void MaxPoolOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  max_pool(shape_, execution.images, src_data_, MapForm::blocked, dst_data_, winners_);
}

void MaxPoolOp::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!src_.wants_diff) return;
  max_pool_backward(shape_, execution.images, dst_data_, winners_, dst_diff_,
                    part_ ? part_ : src_diff_);
  if (part_) add_on_threads(part_, src_diff_, src_.count(execution.images));
}

}  // namespace cputrain::cpu
