#include "backends/cuda/ops/pool_op.h"

#include <fmt/format.h>

#include "backends/cuda/kernels/pools.h"
#include "core/error.h"

namespace cputrain::cuda {

PoolOp::PoolOp(const Planning& planning, int op, const model::Graph::Node& node,
               const model::ZeroPad* zeros, bool relu, const Source& src, const Activation& dst)
    : UnaryOp(planning, op, src, dst, planning, node.name,
              relu ? "by windows, with ReLU" : "by windows"),
      relu_(relu) {
  if (const auto* pool = std::get_if<model::MaxPool>(&node.layer)) {
    if (pool->size > kLargestMaxPool) {
      fail(ExitCode::usage,
           fmt::format(
               "layer {}: a max pool of {} x {} (a winner is kept in one byte, which windows up "
               "to {} x {} allow on --backend cuda); use --backend cpu",
               node.name, pool->size, pool->size, kLargestMaxPool, kLargestMaxPool));
    }
    kind_ = Kind::max;
    window_ = sliding_window(pool->padding, pool->size, pool->stride, zeros, src, dst);
  } else if (const auto* pad = std::get_if<model::ZeroPad>(&node.layer)) {
    kind_ = Kind::max;
    window_ = sliding_window(model::Padding::valid, 1, 1, pad, src, dst);
  } else if (const auto* average = std::get_if<model::AveragePool>(&node.layer)) {
    kind_ = Kind::average;
    window_ = sliding_window(average->padding, average->size, average->stride, nullptr, src, dst);
  }
  if (kind_ != Kind::max) return;
  winners_ = planning.memory.add(dst.count(planning.largest()), planning.forward_time(op));
  if (src.wants_diff) planning.memory.use(winners_, planning.backward_time(op));
}

void PoolOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  if (kind_ == Kind::max) winners_data_ = bindings.at<std::uint8_t>(winners_);
}

void PoolOp::forward(const Execution& execution) {
  const WindowShape shape = of_images(window_, execution.images);
  timed(forward_time_, [&] {
    switch (kind_) {
      case Kind::max:
        return max_pool_forward(stream(), numbers(), shape, src_data_, dst_data_, winners_data_,
                                relu_);
      case Kind::average:
        return average_pool_forward(stream(), numbers(), shape, src_data_, dst_data_);
      case Kind::global:
        return global_average_pool_forward(stream(), numbers(), execution.images,
                                           stored_shape(src_), src_data_, dst_data_);
    }
  });
}

void PoolOp::backward(const Execution& execution) {
  if (!src_diff_) return;
  const WindowShape shape = of_images(window_, execution.images);
  timed(data_time_, [&] {
    switch (kind_) {
      case Kind::max:
        return max_pool_backward(stream(), numbers(), shape, dst_diff_, winners_data_, src_diff_,
                                 src_.adds);
      case Kind::average:
        return average_pool_backward(stream(), numbers(), shape, dst_diff_, src_diff_, src_.adds);
      case Kind::global:
        return global_average_pool_backward(stream(), numbers(), execution.images,
                                            stored_shape(src_), dst_diff_, src_diff_, src_.adds);
    }
  });
}

}  // namespace cputrain::cuda
