#include "backends/cpu/ops/dense_op.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/amx/availability.h"
#include "backends/cpu/kernels/factored_sum.h"
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/parallel.h"
#include "core/casts.h"

namespace cputrain::cpu {
namespace {

/// Backward leaves factors where the exchange forms their products (`keeps_factors`) and they are
/// far smaller than the gradient.
std::optional<compute::Factors> factors_of(const Planning& planning, std::size_t in,
                                           std::size_t out) {
  const compute::Factors factors{to_size(planning.largest()), in, out};
  const bool small = factors.size() <= in * out / 8;
  if (!planning.options.keeps_factors || !small || out % kFactoredColumns != 0) return std::nullopt;
  return factors;
}

}  // namespace

DenseLayerOp::DenseLayerOp(const Planning& planning, int op, const model::Graph::Node& node,
                           const Source& src, const Activation& dst, std::size_t first_parameter)
    : UnaryOp(planning, op, src, dst, node.name, "",
              to_double(src.layout.shape.size()) * dst.layout.shape.channels),
      first_parameter_(first_parameter),
      in_(src.layout.size()),
      out_(dst.layout.size()),
      bias_(std::get<model::Dense>(node.layer).bias),
      learns_(planning.training() && !node.frozen) {}

std::vector<std::unique_ptr<compute::ParameterFormat>> DenseLayerOp::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  formats.push_back(make_rows_format(src_.layout, out_, factors_));
  if (bias_) formats.push_back(make_vector_format(out_));
  return formats;
}

void DenseLayerOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  weights_ = bindings.weights(first_parameter_);
  if (bias_) bias_data_ = bindings.weights(first_parameter_ + 1);
  if (!learns_) return;
  weights_sum_ = bindings.gradients(first_parameter_);
  if (bias_) bias_sum_ = bindings.gradients(first_parameter_ + 1);
}

void DenseLayerOp::write_bias_gradient(std::size_t images, bool overwrite) {
  if (!bias_) return;
  if (overwrite) std::fill_n(bias_sum_, out_, 0.0f);
  for (std::size_t n = 0; n < images; ++n) kernels::add(dst_diff_ + n * out_, bias_sum_, out_);
}

DenseOp::DenseOp(const Planning& planning, int op, const model::Graph::Node& node,
                 const Source& src, const Activation& dst, std::size_t first_parameter,
                 bool zeros_are_dead)
    : DenseLayerOp(planning, op, node, src, dst, first_parameter),
      product_({in_, out_, to_size(planning.largest()), in_}, zeros_are_dead) {
  if (learns_) {
    factors_ = factors_of(planning, in_, out_);
    planning.memory.use(src.value, planning.backward_time(op));
  }
  time_.algorithm = product_.algorithm();
  kept_block_ = planning.memory.add(product_.kept_bytes(), planning.forward_time(op));
  if (dst.wants_diff) planning.memory.use(kept_block_, planning.backward_time(op));
  forward_block_ = planning.memory.add(product_.forward_bytes(), planning.forward_time(op));
  plan_tiles(planning, op);
}

/// By rule: with 16 images and more a product is bound by reading the weights, once and in order.
void DenseOp::plan_tiles(const Planning& planning, int op) {
  const amx::Kernels* const kernels = amx::find_kernels(planning.kernels.tiles);
  const auto images = to_size(planning.largest());
  if (!kernels || !amx::Dense::possible(in_, out_) || images < amx::Dense::kFewestImages) return;
  tiles_.emplace(images, in_, out_, planning.threads, *kernels);
  time_.algorithm = std::string(kernels->name) + ", few images: " + product_.algorithm();
  tiles_forward_ = planning.memory.add(tiles_->forward_bytes(), planning.forward_time(op));
  if (!dst_.wants_diff) return;
  tiles_backward_ = planning.memory.add(tiles_->backward_bytes(), planning.backward_time(op));
}

void DenseOp::bind(const Bindings& bindings) {
  DenseLayerOp::bind(bindings);
  product_.use(bindings.at<std::byte>(kept_block_), bindings.at<std::byte>(forward_block_));
  if (!tiles_) return;
  forward_scratch_ = bindings.at<std::byte>(tiles_forward_);
  if (dst_.wants_diff) backward_scratch_ = bindings.at<std::byte>(tiles_backward_);
}

void DenseOp::forward(const Execution& execution) {
  const TimeSpan span(time_.forward);
  const auto images = to_size(execution.images);
  if (bias_) {
    for (std::size_t n = 0; n < images; ++n) std::copy_n(bias_data_, out_, dst_data_ + n * out_);
  }
  if (in_tiles(images)) {
    if (!bias_) std::fill_n(dst_data_, images * out_, 0.0f);
    return tiles_->forward(images, src_data_, weights_, dst_data_, forward_scratch_);
  }
  product_.forward(images, src_data_, weights_, bias_, dst_data_);
  if (const auto alive = product_.alive()) {
    const std::size_t numbers = images * src_.layout.shape.size();  // without the filling
    time_.density = to_double(*alive) / to_double(numbers);
  }
}

void DenseOp::write_weight_gradients(std::size_t images, bool overwrite) {
  if (!factors_ && in_tiles(images)) {
    return tiles_->backward_weights(images, src_data_, dst_diff_, !overwrite, weights_sum_,
                                    backward_scratch_);
  }
  if (!factors_) {
    return product_.backward_weights(images, src_data_, dst_diff_, !overwrite, weights_sum_);
  }
  assert(overwrite);  // factors of several micro-batches are several chunks'
  transpose_for_factors(*factors_, src_data_, in_, images, weights_sum_);
  std::copy_n(dst_diff_, images * out_, weights_sum_ + in_ * factors_->images);
}

void DenseOp::backward(const Execution& execution) {
  const auto images = to_size(execution.images);
  const bool overwrite = execution.accumulate == compute::Accumulate::overwrite;
  if (learns_) {
    const TimeSpan span(time_.backward_weights);
    write_weight_gradients(images, overwrite);
    write_bias_gradient(images, overwrite);
  }
  if (!src_diff_) return;
  const TimeSpan span(time_.backward_data);
  if (in_tiles(images)) {
    return tiles_->backward_data(images, dst_diff_, weights_, src_.adds, src_diff_,
                                 backward_scratch_);
  }
  product_.backward_data(images, dst_diff_, weights_, src_.adds, src_diff_);
}

}  // namespace cputrain::cpu
