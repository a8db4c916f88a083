#include "backends/cuda/ops/pool_op.h"

#include <fmt/format.h>

#include "backends/cuda/kernels/pools.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// Of a MaxPool or an AveragePool.
template <class Layer>
WindowShape window_of(const Layer& layer, const Activation& src, const Activation& dst) {
  return sliding_window(layer.padding, layer.size, layer.stride, src, dst);
}

void check_size(const model::Graph::Node& node, const model::MaxPool& pool) {
  if (pool.size <= kLargestMaxPool) return;
  fail(
      ExitCode::usage,
      fmt::format("layer {}: a max pool of {} x {} (a winner is kept in one byte, which windows up "
                  "to {} x {} allow on --backend cuda); use --backend cpu",
                  node.name, pool.size, pool.size, kLargestMaxPool, kLargestMaxPool));
}

}  // namespace

PoolOp::PoolOp(const Planning& planning, int op, const model::Graph::Node& node, bool relu,
               const Source& src, const Activation& dst)
    : UnaryOp(planning, op, src, dst, planning, node.name,
              relu ? "gathered, with ReLU" : "gathered"),
      relu_(relu) {
  if (const auto* pool = std::get_if<model::MaxPool>(&node.layer)) {
    check_size(node, *pool);
    kind_ = Kind::max;
    window_ = window_of(*pool, src, dst);
    winners_ = planning.memory.add(dst.count(planning.largest()), planning.forward_time(op));
    if (src.wants_diff) planning.memory.use(winners_, planning.backward_time(op));
  } else if (const auto* average = std::get_if<model::AveragePool>(&node.layer)) {
    kind_ = Kind::average;
    window_ = window_of(*average, src, dst);
  }
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
