#include "backends/cuda/ops/convolution_op.h"

#include <algorithm>

#include "core/error.h"

namespace cputrain::cuda {
namespace {

WindowShape window_of(const model::Convolution& layer, const Map& src, const Map& dst) {
  return sliding_window(layer.padding, layer.kernel, layer.stride, src, dst);
}

WindowShape window_of(const model::Dense&, const Map& src, const Map& dst) {
  return {.src = {1, 1, static_cast<int>(src.stored.size())}, .dst = dst.stored};
}

/// The positions of a kernel, which a dense layer has one of for each of the map's.
int positions_of(const model::Convolution& layer, const Map&) {
  return layer.kernel * layer.kernel;
}
int positions_of(const model::Dense&, const Map& src) { return src.shape.height * src.shape.width; }

/// Calls f with the node's layer, of one of the two types.
template <class F>
auto with_layer(const model::Graph::Node& node, const F& f) {
  if (const auto* dense = std::get_if<model::Dense>(&node.layer)) return f(*dense);
  return f(std::get<model::Convolution>(node.layer));
}

double macs_of(const model::Graph::Node& node, const Map& src) {
  const bool dense = std::holds_alternative<model::Dense>(node.layer);
  const Shape flat{1, 1, static_cast<int>(src.shape.size())};
  return model::macs(node.layer, dense ? flat : src.shape);
}

}  // namespace

ConvolutionOp::ConvolutionOp(const Planning& planning, int op, const model::Graph::Node& node,
                             const Source& src, const Map& dst, std::size_t parameter)
    : Op(node.name, "implicit GEMM of three TF32 products", macs_of(node, src.map)),
      src_(src),
      dst_(dst),
      window_(with_layer(node, [&](const auto& l) { return window_of(l, src.map, dst); })),
      bias_(node.parameters.size() > 1),
      parameter_(parameter) {
  const int positions = with_layer(node, [&](const auto& l) { return positions_of(l, src.map); });
  formats_.push_back(
      ParameterFormat::of_kernel(positions, src.map.shape.channels, dst.shape.channels));
  if (bias_) formats_.push_back(ParameterFormat::of_vector(dst.shape.channels));

  planning.use_maps(op, src.map, dst);
  // Fewer images may need more: their sums are cut into more slices.
  std::size_t workspace = 0;
  for (const int images : planning.sizes) {
    plans_[images] = plan_convolution(window(images), planning.multiprocessors);
    workspace = std::max(workspace, plans_[images].workspace);
  }
  forward_workspace_ = planning.memory.add(workspace, planning.forward_time(op));
  if (!planning.training) return;
  backward_workspace_ = planning.memory.add(workspace, planning.backward_time(op));
  planning.memory.use(src.map.value, planning.backward_time(op));
}

void ConvolutionOp::bind(const Bindings& bindings) {
  src_data_ = bindings.value(src_.map);
  dst_data_ = bindings.value(dst_);
  diff_src_ = bindings.diff(src_.map);
  diff_dst_ = bindings.diff(dst_);
  weights_ = bindings.weights(parameter_);
  if (diff_dst_) diff_weights_ = bindings.gradients(parameter_);
  if (bias_) {
    bias_data_ = bindings.weights(parameter_ + 1);
    if (diff_weights_) diff_bias_ = bindings.gradients(parameter_ + 1);
  }
  forward_space_ = bindings.at(forward_workspace_);
  if (diff_dst_) backward_space_ = bindings.at(backward_workspace_);
}

void ConvolutionOp::forward(const Execution& execution) {
  timed(forward_time_, execution.stream, [&] {
    convolution_forward(execution.stream, call(execution.images, forward_space_), src_data_,
                        weights_, bias_data_, dst_data_);
  });
}

void ConvolutionOp::backward(const Execution& execution) {
  if (!diff_dst_) return;
  const ConvolutionCall backward_call = call(execution.images, backward_space_);
  if (diff_weights_) {
    timed(weights_time_, execution.stream, [&] {
      convolution_backward_weights(execution.stream, backward_call, src_data_, diff_dst_,
                                   diff_weights_, diff_bias_, execution.add);
    });
  }
  if (diff_src_) {
    timed(data_time_, execution.stream, [&] {
      convolution_backward_data(execution.stream, backward_call, diff_dst_, weights_, diff_src_,
                                src_.adds);
    });
  }
}

WindowShape ConvolutionOp::window(int images) const {
  WindowShape made = window_;
  made.images = images;
  return made;
}

ConvolutionCall ConvolutionOp::call(int images, float* workspace) const {
  const auto plan = plans_.find(images);
  if (plan == plans_.end()) {
    fail(ExitCode::internal, time().name + " was not compiled for " + std::to_string(images) +
                                 " images, so it has no plan for them");
  }
  return {window(images), plan->second, workspace};
}

}  // namespace cputrain::cuda
