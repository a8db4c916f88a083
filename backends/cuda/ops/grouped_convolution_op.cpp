#include "backends/cuda/ops/grouped_convolution_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

double macs_in_groups(const model::Graph::Node& node, const model::ZeroPad* zeros,
                      const Activation& src) {
  const Shape& read = src.layout.shape;
  return model::macs(node.layer, zeros ? model::output_shape(*zeros, read) : read);
}

/// Kernels count weights with `int`.
void check_weights(const model::Graph::Node& node, const GroupedShape& shape) {
  const double weights = (shape.rows() + 1.0) * shape.window.dst.channels;
  if (weights <= std::numeric_limits<int>::max()) return;
  fail(ExitCode::usage,
       fmt::format("layer {}: {} weights (kernels of --backend cuda count those of a convolution "
                   "in groups in 31 bits); use --backend cpu",
                   node.name, weights));
}

}  // namespace

GroupedConvolutionOp::GroupedConvolutionOp(const Planning& planning, int op,
                                           const model::Graph::Node& node,
                                           const model::ZeroPad* zeros, const Source& src,
                                           const Activation& dst, std::size_t parameter)
    : UnaryOp(planning, op, src, dst, planning, node.name, "direct, by group",
              macs_in_groups(node, zeros, src)),
      bias_(node.parameters.size() > 1),
      parameter_(parameter),
      copies_(planning.copies) {
  const auto& layer = std::get<model::Convolution>(node.layer);
  shape_ = {.window = sliding_window(layer.padding, layer.kernel, layer.stride, zeros, src, dst),
            .channels = src.layout.shape.channels,
            .filters = layer.filters,
            .groups = layer.groups};
  check_weights(node, shape_);
  if (!planning.training()) return;
  std::int64_t sums = 0;
  for (const int images : planning.sizes) {
    GroupedShape shape = shape_;
    shape.window.images = images;
    slices_.push_back(grouped_slices(planning.numbers, shape, planning.multiprocessors));
    sums = std::max(sums, grouped_sums(shape, slices_.back()));
  }
  sums_ = planning.memory.add(to_size(sums) * sizeof(float), planning.backward_time(op));
  planning.memory.use(src.value, planning.backward_time(op));
}

std::vector<std::unique_ptr<compute::ParameterFormat>> GroupedConvolutionOp::formats() const {
  std::vector<std::unique_ptr<compute::ParameterFormat>> formats;
  formats.push_back(std::make_unique<FiltersLast>(shape_.rows(), shape_.filters));
  if (bias_) {
    formats.push_back(std::make_unique<OutputsFirst>(OutputsFirst::of_vector(shape_.filters)));
  }
  return formats;
}

void GroupedConvolutionOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  const float* const weights = bindings.weights(parameter_);
  operand_ = copies_->find(weights)->of(weights);
  if (dst_diff_) diff_weights_ = bindings.gradients(parameter_);
  if (bias_) {
    bias_data_ = bindings.weights(parameter_ + 1);
    if (diff_weights_) diff_bias_ = bindings.gradients(parameter_ + 1);
  }
  if (dst_diff_) sums_data_ = bindings.at(sums_);
}

void GroupedConvolutionOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    grouped_forward(stream(), numbers(), of(execution), src_data_, operand_, bias_data_, dst_data_);
  });
}

void GroupedConvolutionOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  if (diff_weights_) {
    timed(weights_time_, [&] {
      grouped_backward_weights(stream(), numbers(), of(execution), slices_[execution.size],
                               src_data_, dst_diff_, sums_data_, diff_weights_, diff_bias_,
                               execution.adds());
    });
  }
  if (src_diff_) {
    timed(data_time_, [&] {
      grouped_backward_data(stream(), numbers(), of(execution), dst_diff_, operand_, src_diff_,
                            src_.adds);
    });
  }
}

GroupedShape GroupedConvolutionOp::of(const Execution& execution) const {
  GroupedShape shape = shape_;
  shape.window.images = execution.images;
  return shape;
}

}  // namespace cputrain::cuda
