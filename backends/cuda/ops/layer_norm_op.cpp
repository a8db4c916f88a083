#include "backends/cuda/ops/layer_norm_op.h"

#include <algorithm>

#include "core/casts.h"

namespace cputrain::cuda {

LayerNormOp::LayerNormOp(const Planning& planning, int op, const model::Graph::Node& node,
                         const Source& src, const Activation& dst, std::size_t first_parameter)
    : UnaryOp(planning, op, src, dst, planning, node.name, "lanes of a warp share a position"),
      layer_(std::get<model::LayerNorm>(node.layer)),
      multiprocessors_(planning.multiprocessors),
      first_parameter_(first_parameter) {
  pass_.channels = src.layout.shape.channels;
  pass_.epsilon = layer_.epsilon;
  pass_.positions = pass(planning.largest()).positions;
  const std::size_t statistics = 2 * to_size(pass_.positions) * sizeof(float);
  statistics_block_ = planning.memory.add(statistics, planning.forward_time(op));
  if (!dst.wants_diff) return;
  const int backward = planning.backward_time(op);
  planning.memory.use(statistics_block_, backward);
  planning.memory.use(src.value, backward);
  if (node.frozen || node.parameters.empty()) return;
  std::size_t sums = 0;
  for (const int images : planning.sizes) sums = std::max(sums, plan_sums(images).count());
  sums_block_ = planning.memory.add(sums * sizeof(float), backward);
}

std::vector<std::unique_ptr<compute::ParameterFormat>> LayerNormOp::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  for (const bool has : {layer_.scale, layer_.offset}) {
    if (!has) continue;
    formats.push_back(std::make_unique<OutputsFirst>(OutputsFirst::of_vector(pass_.channels)));
  }
  return formats;
}

void LayerNormOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  const std::size_t beta = first_parameter_ + (layer_.scale ? 1 : 0);
  if (layer_.scale) pass_.gamma = bindings.weights(first_parameter_);
  if (layer_.offset) pass_.beta = bindings.weights(beta);
  pass_.mean = bindings.at(statistics_block_);
  pass_.inverse = pass_.mean + pass_.positions;
  if (!dst_diff_) return;
  if (layer_.scale) gradients_.gamma = bindings.gradients(first_parameter_);
  if (layer_.offset) gradients_.beta = bindings.gradients(beta);
  if (gradients_.gamma || gradients_.beta) sums_ = bindings.at(sums_block_);
}

LayerNormPass LayerNormOp::pass(int images) const {
  LayerNormPass pass = pass_;
  pass.positions = images * src_.layout.shape.height * src_.layout.shape.width;
  return pass;
}

ChannelSums LayerNormOp::plan_sums(int images) const {
  return plan_channel_sums(numbers(), pass(images).positions, src_.layout.block, multiprocessors_);
}

void LayerNormOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    normalize_positions(stream(), numbers(), pass(execution.images), src_data_, dst_data_);
  });
}

void LayerNormOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  const LayerNormPass of_images = pass(execution.images);
  if (sums_) {
    timed(weights_time_, [&] {
      ChannelSums sums = plan_sums(execution.images);
      sums.values = sums_;
      sum_position_slopes(stream(), numbers(), sums, of_images, src_data_, dst_diff_);
      gradients_.add = execution.adds();
      finish_slopes(stream(), sums, {}, gradients_);
    });
  }
  if (!src_diff_) return;
  timed(data_time_, [&] {
    normalize_positions_backward(stream(), numbers(), of_images, src_data_, dst_diff_, src_diff_,
                                 src_.adds);
  });
}

}  // namespace cputrain::cuda
