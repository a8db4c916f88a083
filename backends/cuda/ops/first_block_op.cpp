#include "backends/cuda/ops/first_block_op.h"

#include <algorithm>

#include "core/casts.h"

namespace cputrain::cuda {

const model::Graph::Node* take_first_block(compute::GraphWalk& walk) {
  compute::GraphWalk ahead = walk;
  const auto* const convolves = ahead.only_next_is<model::Convolution>();
  if (ahead.node().dst.channels != kColours) return nullptr;
  if (!convolves || convolves->kernel != 3 || convolves->stride != 1 || convolves->groups != 1) {
    return nullptr;
  }
  ahead.advance();
  const model::Graph::Node& convolution = ahead.node();
  const auto* const pools = ahead.only_next_is<model::MaxPool>();
  if (!pools || pools->size != 2 || pools->stride != 2 || pools->padding != model::Padding::valid) {
    return nullptr;
  }
  ahead.advance();
  if (!ahead.only_next_is<model::Relu>()) return nullptr;
  while (walk.index() <= ahead.index()) walk.advance();
  return &convolution;
}

FirstBlockOp::FirstBlockOp(const Planning& planning, int op, const model::Graph::Node& input,
                           const model::Graph::Node& convolution, const Activation& dst,
                           std::size_t parameter)
    : DeviceOp(planning, convolution.name,
               std::string("bytes to pooled numbers by ") + products_of(planning.numbers),
               model::macs(convolution.layer, input.dst)),
      block_{.load = images_of(planning, input), .dst = stored_shape(dst)},
      dst_(dst),
      kernel_(planning, convolution, parameter) {
  const auto& layer = std::get<model::Convolution>(convolution.layer);
  block_.zeros =
      model::pad_amount(layer.padding, input.dst.height, layer.kernel, layer.stride).before;
  std::int64_t sums = 0;
  for (const int images : planning.sizes) {
    slices_.push_back(
        first_block_slices(planning.numbers, of_images(images), planning.multiprocessors));
    sums = std::max(sums, first_block_sums(block_, slices_.back()));
  }
  planning.memory.use(dst.value, planning.forward_time(op));
  if (!dst.wants_diff) return;
  planning.memory.use(dst.diff, planning.backward_time(op));
  const std::size_t words = dst.count(planning.largest()) / kWinnersOfWord;
  winners_ = planning.memory.add(words * sizeof(WinnerWord), planning.forward_time(op));
  planning.memory.use(winners_, planning.backward_time(op));
  sums_ = planning.memory.add(to_size(sums) * sizeof(float), planning.backward_time(op));
}

Formats FirstBlockOp::formats() const {
  const int channels = dst_.layout.shape.channels;
  return kernel_.formats(PaddedFormat::of_kernel(FirstBlock::kPositions, kColours, channels),
                         channels);
}

void FirstBlockOp::bind(const Bindings& bindings) {
  dst_data_ = bindings.value<void>(dst_);
  dst_diff_ = bindings.diff<void>(dst_);
  kernel_.bind(bindings, dst_diff_);
  if (!dst_diff_) return;
  winners_data_ = bindings.at<WinnerWord>(winners_);
  sums_data_ = bindings.at(sums_);
}

void FirstBlockOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    first_block_forward(stream(), numbers(), of_images(execution.images), slices_[execution.size],
                        kernel_.weights, kernel_.bias, dst_data_, winners_data_);
  });
}

void FirstBlockOp::backward(const Execution& execution) {
  if (!kernel_.diff_weights) return;
  timed(weights_time_, [&] {
    first_block_backward_weights(stream(), numbers(), of_images(execution.images),
                                 slices_[execution.size], dst_diff_, winners_data_, sums_data_,
                                 kernel_.diff_weights, kernel_.diff_bias, execution.adds());
  });
}

FirstBlock FirstBlockOp::of_images(int images) const {
  FirstBlock block = block_;
  block.load.images = images;
  return block;
}

}  // namespace cputrain::cuda
