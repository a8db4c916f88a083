#include "backends/cuda/ops/convolution_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/cuda/ops/add_op.h"
#include "backends/cuda/ops/batch_norm_op.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

WindowShape window_of(const model::Convolution& layer, const model::ZeroPad* zeros,
                      const Activation& src, const Activation& dst) {
  return sliding_window(layer.padding, layer.kernel, layer.stride, zeros, src, dst);
}

WindowShape window_of(const model::Dense&, const model::ZeroPad*, const Activation& src,
                      const Activation& dst) {
  return {.src = {1, 1, to_int(src.layout.size())}, .dst = stored_shape(dst)};
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

/// Weights and maps have places that products can count.
void check_counts(const model::Graph::Node& node, const Planning& planning, double weights,
                  const WindowShape& window) {
  if (weights * to_double(stored_bytes(planning.numbers)) > double{kMostChunks} * kChunkBytes) {
    fail(ExitCode::usage,
         fmt::format("layer {}: {} weights (at most 32 GiB, since kernels of --backend cuda count "
                     "their pieces of 16 bytes in 31 bits); use --backend cpu",
                     node.name, weights));
  }
  if (counted_chunks(of_images(window, planning.largest()), planning.numbers) >
      std::numeric_limits<int>::max()) {
    fail(ExitCode::usage,
         fmt::format("layer {}: {} images at once (a map has at most 32 GiB, windows that reach "
                     "over its end included, on --backend cuda); use a smaller --micro-batch",
                     node.name, planning.largest()));
  }
}

double macs_of(const model::Graph::Node& node, const model::ZeroPad* zeros, const Activation& src) {
  const Shape& read = src.layout.shape;
  if (std::holds_alternative<model::Dense>(node.layer)) {
    return model::macs(node.layer, {1, 1, to_int(read.size())});
  }
  return model::macs(node.layer, zeros ? model::output_shape(*zeros, read) : read);
}

}  // namespace

ConvolutionOp::ConvolutionOp(const Planning& planning, int op, const model::Graph::Node& node,
                             const model::ZeroPad* zeros, const Source& src,
                             const std::optional<Source>& added, const Activation& dst,
                             std::size_t parameter)
    : UnaryOp(planning, op, src, dst, planning, node.name,
              std::string("implicit GEMM of ") + products_of(planning.numbers) +
                  (added ? ", with addition" : ""),
              macs_of(node, zeros, src)),
      window_(with_layer(node, [&](const auto& l) { return window_of(l, zeros, src, dst); })),
      added_(added),
      bias_(node.parameters.size() > 1),
      parameter_(parameter),
      copies_(planning.copies) {
  const int positions = with_layer(node, [&](const auto& l) { return positions_of(l, src); });
  check_counts(node, planning, to_double(positions) * src.layout.block * dst.layout.block, window_);
  formats_.push_back(
      OutputsFirst::of_kernel(positions, src.layout.shape.channels, dst.layout.shape.channels));
  if (bias_) formats_.push_back(OutputsFirst::of_vector(dst.layout.shape.channels));

  // Fewer images may need more: their sums are cut into more slices.
  std::size_t workspace = 0;
  for (const int images : planning.sizes) {
    const WindowShape window = of_images(window_, images);
    plans_.push_back(plan_convolution(window, planning.numbers, planning.multiprocessors));
    workspace = std::max(workspace, plans_.back().workspace_bytes(window));
  }
  forward_workspace_ = planning.memory.add(workspace, planning.forward_time(op));
  if (added_) {
    planning.use_forward(op, *added_, dst);
    planning.use_backward(op, *added_, dst);
  }
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
  UnaryOp::bind(bindings);
  const float* const weights = bindings.weights(parameter_);
  operand_ = copies_->find(weights)->of(weights);
  if (dst_diff_) diff_weights_ = bindings.gradients(parameter_);
  if (bias_) {
    bias_data_ = bindings.weights(parameter_ + 1);
    if (diff_weights_) diff_bias_ = bindings.gradients(parameter_ + 1);
  }
  if (added_) {
    added_data_ = bindings.value<void>(*added_);
    if (!added_->shares_diff) added_diff_ = bindings.diff<void>(*added_);
  }
  forward_space_ = bindings.at(forward_workspace_);
  if (dst_diff_) backward_space_ = bindings.at(backward_workspace_);
  for (MadeSums* made : {&moments_, &slopes_}) {
    if (made->block) made->values = bindings.at(*made->block);
  }
}

void ConvolutionOp::make_moments(const Planning& planning, int op, int reader) {
  make(moments_, planning, planning.forward_time(op), planning.forward_time(reader));
}

void ConvolutionOp::make_slopes(const Planning& planning, int op, BatchNormOp& norm, int producer) {
  make(slopes_, planning, planning.backward_time(op), planning.backward_time(producer));
  norm_ = &norm;
  norm.take_slopes_from(*this);
}

/// They live from one time to the other.
void ConvolutionOp::make(MadeSums& made, const Planning& planning, int begin, int end) {
  if (!made.block) {
    std::size_t most = 0;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      const WindowShape window = of_images(window_, planning.sizes[i]);
      most = std::max(most, made.of(window, plans_[i]).count());
    }
    made.block = planning.memory.add(most * sizeof(float), begin);
  }
  planning.memory.use(*made.block, end);
}

ChannelSums ConvolutionOp::sums(const MadeSums& made, const Execution& execution) const {
  if (!made.values) return {};
  ChannelSums sums = made.of(of_images(window_, execution.images), plans_[execution.size]);
  if (sums.parts > 0) sums.values = made.values;
  return sums;
}

ChannelSums ConvolutionOp::moments(const Execution& execution) const {
  return execution.pass.phase == compute::Phase::train ? sums(moments_, execution) : ChannelSums{};
}

ChannelSums ConvolutionOp::slopes(const Execution& execution) const {
  return sums(slopes_, execution);
}

void ConvolutionOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    convolution_forward(stream(), call(execution, forward_space_), src_data_, operand_, bias_data_,
                        added_data_, dst_data_, moments(execution));
  });
}

void ConvolutionOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  const ConvolutionCall backward_call = call(execution, backward_space_);
  if (diff_weights_) {
    timed(weights_time_, [&] {
      convolution_backward_weights(stream(), backward_call, src_data_, dst_diff_, diff_weights_,
                                   diff_bias_, execution.adds());
    });
  }
  if (!added_diff_ && !src_diff_) return;
  timed(data_time_, [&] {
    if (added_diff_) {
      pass_on(stream(), numbers(), dst_.count(execution.images), dst_diff_, added_diff_,
              added_->adds);
    }
    if (src_diff_) {
      convolution_backward_data(stream(), backward_call, dst_diff_, operand_, src_diff_, src_.adds,
                                norm_ ? norm_->slopes(slopes(execution), execution) : NormSlopes{});
    }
  });
}

ConvolutionCall ConvolutionOp::call(const Execution& execution, float* workspace) const {
  return {numbers(), of_images(window_, execution.images), plans_[execution.size], workspace};
}

}  // namespace cputrain::cuda
