#include "backends/cpu/ops/sharded_dense_op.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "comm/communicator.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

/// Rows of a matrix without gaps, by all threads.
void copy_rows(const float* src, std::size_t rows, std::size_t width, float* dst) {
  parallel_ranges(rows * width, [&](std::size_t begin, std::size_t end) {
    std::copy(src + begin, src + end, dst + begin);
  });
}

/// Adds the time it lived, but for waits, to a total.
class WorkSpan {
 public:
  WorkSpan(const exchange::SharedLayer& layer, double& total)
      : layer_(layer), total_(total), waited_(layer.waited()) {}
  ~WorkSpan() { total_ += watch_.seconds() - (layer_.waited() - waited_); }
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;

 private:
  const exchange::SharedLayer& layer_;
  double& total_;
  double waited_;
  system::Stopwatch watch_;
};

comm::Communicator& ranks_of(const Planning& planning) {
  assert(planning.options.node && "a sharded layer without ranks to share it");
  return *planning.options.node;
}

}  // namespace

ShardedDenseOp::ShardedDenseOp(const Planning& planning, int op, const model::Graph::Node& node,
                               const Source& src, const Activation& dst,
                               std::size_t first_parameter, bool zeros_are_dead)
    : DenseLayerOp(planning, op, node, src, dst, first_parameter),
      zeros_are_dead_(zeros_are_dead),
      most_images_(to_size(planning.largest())),
      node_(ranks_of(planning)) {
  assert(!node.frozen);
}

void ShardedDenseOp::bind(const Bindings& bindings) {
  DenseLayerOp::bind(bindings);
  comm::NodeMemory& memory = node_.node_memory();
  layer_ = std::make_unique<exchange::SharedLayer>(
      memory, exchange::SharedLayer::Size{in_, out_, most_images_}, DType::f32);
  const compute::Parameter& kernel = bindings.layout.parameters[first_parameter_];
  assert(kernel.row == out_);
  for (int rank = 0; rank < layer_->ranks(); ++rank) {
    const Range own = compute::shard_of(kernel, rank, layer_->ranks());
    has_rows_.push_back(own.size() > 0);
    if (rank != layer_->local_rank()) continue;
    shard_ = {own.begin - kernel.range.begin, own.end - kernel.range.begin};
  }
  product_.emplace(DenseProduct::Size{rows(), out_, layer_->images(), in_}, zeros_are_dead_);
  kept_.resize(product_->kept_bytes());
  for_forward_.resize(product_->forward_bytes());
  product_->use(kept_.data(), for_forward_.data());
  time_.algorithm = std::string(product_->algorithm()) + ", sharded over the node's ranks";
  weights_ += shard_.begin;
  if (learns_) weights_sum_ += shard_.begin;
}

void ShardedDenseOp::multiply_together(int images) {
  const WorkSpan span(*layer_, time_.forward);
  layer_->begin(to_size(images));
  const Range own = layer_->rows();
  copy_rows(src_data_, own.size(), in_, layer_->sources().as<float>().data() + own.begin * in_);
  layer_->wait();
  multiply_columns();
  layer_->wait();
  add_partial_sums();
}

void ShardedDenseOp::multiply_columns() {
  if (layer_->images() == 0 || rows() == 0) return;
  const float* columns = layer_->sources().as<float>().data() + first_row();
  product_->forward(layer_->images(), columns, weights_, false,
                    layer_->partial_sums(layer_->local_rank()).as<float>().data());
}

void ShardedDenseOp::add_partial_sums() {
  const Range own = layer_->rows();
  parallel_for(own.size(), [&](std::size_t image) {
    float* dst = dst_data_ + image * out_;
    if (bias_) {
      std::copy_n(bias_data_, out_, dst);
    } else {
      std::fill_n(dst, out_, 0.0f);
    }
    for (int rank = 0; rank < layer_->ranks(); ++rank) {
      if (!has_rows_[to_size(rank)]) continue;
      const float* sums = layer_->partial_sums(rank).as<float>().data();
      kernels::add(sums + (own.begin + image) * out_, dst, out_);
    }
  });
}

void ShardedDenseOp::go_back(compute::Accumulate accumulate) {
  if (!learns_) return;
  const Range own = layer_->rows();
  {
    const WorkSpan span(*layer_, time_.backward_weights);
    copy_rows(dst_diff_, own.size(), out_, layer_->diff().as<float>().data() + own.begin * out_);
    layer_->wait();
    write_weights_gradient(accumulate);
  }
  if (!src_diff_) return;
  const WorkSpan span(*layer_, time_.backward_data);
  write_source_gradient();
  layer_->wait();
  const float* diff = layer_->sources().as<float>().data() + own.begin * in_;
  if (!src_.adds) return copy_rows(diff, own.size(), in_, src_diff_);
  parallel_ranges(own.size() * in_, [&](std::size_t begin, std::size_t end) {
    kernels::add(diff + begin, src_diff_ + begin, end - begin);
  });
}

void ShardedDenseOp::write_weights_gradient(compute::Accumulate accumulate) {
  const bool overwrite = accumulate == compute::Accumulate::overwrite;
  const Range own = layer_->rows();
  write_bias_gradient(own.size(), overwrite);
  if (rows() == 0) return;
  if (layer_->images() == 0) {
    if (overwrite) std::fill_n(weights_sum_, shard_.size(), 0.0f);
    return;
  }
  const float* columns = layer_->sources().as<float>().data() + first_row();
  product_->backward_weights(layer_->images(), columns, layer_->diff().as<float>().data(),
                             !overwrite, weights_sum_);
}

/// Own columns of all images; what they held is not needed any more.
void ShardedDenseOp::write_source_gradient() {
  if (layer_->images() == 0 || rows() == 0) return;
  float* columns = layer_->sources().as<float>().data() + first_row();
  product_->backward_data(layer_->images(), layer_->diff().as<float>().data(), weights_, false,
                          columns);
}

}  // namespace cputrain::cpu
