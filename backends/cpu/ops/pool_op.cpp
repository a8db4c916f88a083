#include "backends/cpu/ops/pool_op.h"

#include <algorithm>
#include <type_traits>

#include "backends/cpu/kernels/on_threads.h"

namespace cputrain::cpu {
namespace {

template <class Number>
constexpr NumberType kNumbers = sizeof(Number) == sizeof(Bf16) ? NumberType::bf16 : NumberType::f32;

PoolProblem pool_problem(const model::Layer& layer, int images, const compute::SampleLayout& src,
                         const compute::SampleLayout& dst, NumberType numbers) {
  const Shape& from = src.shape;
  const auto windows = [&](int size, int stride, model::Padding padding) {
    return PoolProblem{images,
                       src,
                       dst,
                       size,
                       size,
                       stride,
                       model::pad_amount(padding, from.height, size, stride),
                       model::pad_amount(padding, from.width, size, stride),
                       numbers};
  };
  if (const auto* l = std::get_if<model::MaxPool>(&layer))
    return windows(l->size, l->stride, l->padding);
  if (const auto* l = std::get_if<model::AveragePool>(&layer)) {
    return windows(l->size, l->stride, l->padding);
  }
  return {images, src, dst, from.height, from.width, 1, {0, 0}, {0, 0}, numbers};  // all of it
}

}  // namespace

template <class Number>
PoolOp<Number>::PoolOp(const Planning& planning, int op, const model::Graph::Node& node,
                       const Source& src, const Activation& dst)
    : Unary(planning, op, src, dst, node.name),
      dnnl_(planning.dnnl),
      max_(std::holds_alternative<model::MaxPool>(node.layer)),
      training_(planning.training()) {
  if (const auto* max = std::get_if<model::MaxPool>(&node.layer)) {
    const bool blocked = src_.layout.block == 8 || src_.layout.block == 16;
    if (std::is_same_v<Number, float> && blocked && max->size <= MaxPoolShape::kLargestSize) {
      spreads_nan_ = MaxPoolShape::of(*max, src_.layout, dst.layout, false);
    }
  }
  const PoolKind kind = max_ ? PoolKind::max : PoolKind::average;
  std::size_t workspace = 0, forward_scratch = 0, backward_scratch = 0;
  for (const int images : planning.sizes) {
    const PoolProblem problem =
        pool_problem(node.layer, images, src_.layout, dst.layout, kNumbers<Number>);
    Prepared& made = prepared_.emplace_back();
    made.images = images;
    made.forward = pool_forward(planning.dnnl, problem, kind, training_);
    forward_scratch = std::max(forward_scratch, made.forward.scratchpad);
    if (max_ && training_) workspace = std::max(workspace, made.forward.workspace.get_size());
    if (!src_.wants_diff) continue;
    made.backward = pool_backward(planning.dnnl, problem, kind);
    backward_scratch = std::max(backward_scratch, made.backward.scratchpad);
  }
  const int forward = planning.forward_time(op), backward = planning.backward_time(op);
  compute::MemoryPlan& memory = planning.memory;
  workspace_ = memory.add(workspace, forward);
  forward_scratch_ = memory.add(forward_scratch, forward);
  if (src_.wants_diff) {
    memory.use(workspace_, backward);
    backward_scratch_ = memory.add(backward_scratch, backward);
    if (src.adds) part_block_ = memory.add(src.bytes(planning.largest()), backward);
  }
  time_.algorithm = prepared_.front().forward.implementation;
}

template <class Number>
void PoolOp<Number>::bind(const Bindings& bindings) {
  Unary::bind(bindings);
  if (src_.adds && src_.wants_diff) part_ = bindings.at<Number>(part_block_);
  for (Prepared& made : prepared_) {
    const auto src = activation_desc(src_.layout, made.images, kNumbers<Number>);
    const auto dst = activation_desc(dst_.layout, made.images, kNumbers<Number>);
    std::vector<Call::Argument> arguments{{DNNL_ARG_SRC, src, src_data_},
                                          {DNNL_ARG_DST, dst, dst_data_}};
    const Call::Argument workspace{DNNL_ARG_WORKSPACE, made.forward.workspace,
                                   bindings.at<std::byte>(workspace_)};
    if (max_ && training_) arguments.push_back(workspace);
    made.pool = Call(dnnl_, made.forward, bindings.at<std::byte>(forward_scratch_), arguments);
    if (!src_.wants_diff) continue;
    arguments = {{DNNL_ARG_DIFF_DST, dst, dst_diff_},
                 {DNNL_ARG_DIFF_SRC, src, part_ ? part_ : src_diff_}};
    if (max_) arguments.push_back(workspace);
    made.unpool = Call(dnnl_, made.backward, bindings.at<std::byte>(backward_scratch_), arguments);
  }
}

template <class Number>
void PoolOp<Number>::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  prepared_[execution.size].pool.run();
  if constexpr (std::is_same_v<Number, float>) {
    if (!spreads_nan_ || !has_nan(src_data_, src_.count(execution.images))) return;
    max_pool(*spreads_nan_, execution.images, src_data_, MapForm::blocked, dst_data_, nullptr);
  }
}

template <class Number>
void PoolOp<Number>::backward(const Execution& execution) {
  const TimeSpan span(time_.backward_data);
  if (!src_.wants_diff) return;
  prepared_[execution.size].unpool.run();
  if (!part_) return;
  add_on_threads(part_, src_diff_, src_.count(execution.images));
}

template class PoolOp<float>;
template class PoolOp<Bf16>;

}  // namespace cputrain::cpu
