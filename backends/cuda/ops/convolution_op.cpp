#include "backends/cuda/ops/convolution_op.h"

#include <algorithm>

#include "core/error.h"

namespace cputrain::cuda {
namespace {

WindowShape window_of(const model::Convolution& layer, const Activation& src,
                      const Activation& dst) {
  return sliding_window(layer.padding, layer.kernel, layer.stride, src, dst);
}

WindowShape window_of(const model::Dense&, const Activation& src, const Activation& dst) {
  return {.src = {1, 1, static_cast<int>(src.layout.size())}, .dst = stored_shape(dst)};
}

/// The positions of a kernel, which a dense layer has one of for each of its own.
int positions_of(const model::Convolution& layer, const Activation&) {
  return layer.kernel * layer.kernel;
}
int positions_of(const model::Dense&, const Activation& src) {
  return src.layout.shape.height * src.layout.shape.width;
}

/// Calls f with the node's layer, of one of the two types.
template <class F>
auto with_layer(const model::Graph::Node& node, const F& f) {
  if (const auto* dense = std::get_if<model::Dense>(&node.layer)) return f(*dense);
  return f(std::get<model::Convolution>(node.layer));
}

double macs_of(const model::Graph::Node& node, const Activation& src) {
  const bool dense = std::holds_alternative<model::Dense>(node.layer);
  const Shape flat{1, 1, static_cast<int>(src.layout.shape.size())};
  return model::macs(node.layer, dense ? flat : src.layout.shape);
}

}  // namespace

ConvolutionOp::ConvolutionOp(const Planning& planning, int op, const model::Graph::Node& node,
                             const Source& src, const Activation& dst, std::size_t parameter)
    : DeviceOp(planning, node.name, "implicit GEMM of three TF32 products", macs_of(node, src)),
      src_(src),
      dst_(dst),
      window_(with_layer(node, [&](const auto& l) { return window_of(l, src, dst); })),
      bias_(node.parameters.size() > 1),
      parameter_(parameter) {
  const int positions = with_layer(node, [&](const auto& l) { return positions_of(l, src); });
  formats_.push_back(
      OutputsFirst::of_kernel(positions, src.layout.shape.channels, dst.layout.shape.channels));
  if (bias_) formats_.push_back(OutputsFirst::of_vector(dst.layout.shape.channels));

  planning.use_forward(op, src, dst);
  planning.use_backward(op, src, dst);
  // Fewer images may need more: their sums are cut into more slices.
  std::size_t workspace = 0;
  for (const int images : planning.sizes) {
    plans_[images] = plan_convolution(window(images), planning.multiprocessors);
    workspace = std::max(workspace, plans_[images].workspace);
  }
  forward_workspace_ = planning.memory.add(workspace, planning.forward_time(op));
  if (!planning.training()) return;
  backward_workspace_ = planning.memory.add(workspace, planning.backward_time(op));
  planning.memory.use(src.value, planning.backward_time(op));
}

std::vector<std::unique_ptr<compute::ParameterFormat>> ConvolutionOp::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  for (const OutputsFirst& format : formats_) {
    formats.push_back(std::make_unique<OutputsFirst>(format));
  }
  return formats;
}

void ConvolutionOp::bind(const Bindings& bindings) {
  src_data_ = bindings.value(src_);
  dst_data_ = bindings.value(dst_);
  diff_src_ = bindings.diff(src_);
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
  timed(forward_time_, [&] {
    convolution_forward(stream(), call(execution.images, forward_space_), src_data_, weights_,
                        bias_data_, dst_data_);
  });
}

void ConvolutionOp::backward(const Execution& execution) {
  if (!diff_dst_) return;
  const ConvolutionCall backward_call = call(execution.images, backward_space_);
  if (diff_weights_) {
    timed(weights_time_, [&] {
      convolution_backward_weights(stream(), backward_call, src_data_, diff_dst_, diff_weights_,
                                   diff_bias_, execution.adds());
    });
  }
  if (diff_src_) {
    timed(data_time_, [&] {
      convolution_backward_data(stream(), backward_call, diff_dst_, weights_, diff_src_, src_.adds);
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
    fail(ExitCode::internal, time_.name + " was not compiled for " + std::to_string(images) +
                                 " images, so it has no plan for them");
  }
  return {window(images), plan->second, workspace};
}

}  // namespace cputrain::cuda
