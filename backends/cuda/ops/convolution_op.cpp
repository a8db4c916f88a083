#include "backends/cuda/ops/convolution_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "backends/cuda/ops/norm_ops.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

WindowShape window_of(const model::Graph::Node& node, const model::ZeroPad* zeros,
                      const Activation& src, const Activation& dst) {
  if (const auto* layer = std::get_if<model::Convolution>(&node.layer)) {
    return sliding_window(layer->padding, layer->kernel, layer->stride, zeros, src, dst);
  }
  return {.src = {1, 1, to_int(src.layout.size())}, .dst = stored_shape(dst)};
}

/// A dense layer's kernel has a position for each of its source's.
PaddedFormat format_of(const model::Graph::Node& node, const Activation& src, const Activation& dst,
                       const std::optional<PixelPairs>& pairs) {
  const auto* layer = std::get_if<model::Convolution>(&node.layer);
  const Shape& read = src.layout.shape;
  const int out = dst.layout.shape.channels;
  if (layer && pairs) return PaddedFormat::of_pairs(layer->kernel, pairs->image.channels, out);
  const int positions = layer ? layer->kernel * layer->kernel : read.height * read.width;
  return PaddedFormat::of_kernel(positions, read.channels, out);
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

double macs_of(const model::Graph::Node& node, const model::ZeroPad* zeros, const Shape& read) {
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

ConvolutionOp::ConvolutionOp(const Planning& planning, int op, const model::Graph::Node& node,
                             const model::ZeroPad* zeros, const Source& src,
                             const std::optional<Source>& added, const Activation& dst,
                             std::size_t parameter, const std::optional<PixelPairs>& pairs)
    : UnaryOp(planning, op, src, dst, planning, node.name,
              std::string("implicit GEMM of ") + products_of(planning.numbers) +
                  (added ? ", with addition" : ""),
              macs_of(node, zeros, pairs ? pairs->image : src.layout.shape)),
      window_(window_of(node, zeros, src, dst)),
      added_(added),
      kernel_(planning, node, parameter),
      format_(format_of(node, src, dst, pairs)) {
  if (pairs) {
    window_.pixels = kPixelsOfPair;
    window_.left = pairs->left / kPixelsOfPair;
  }
  check_counts(node, planning, to_double(format_.stored()), window_);

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

Formats ConvolutionOp::formats() const {
  return kernel_.formats(format_, dst_.layout.shape.channels);
}

void ConvolutionOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  kernel_.bind(bindings, dst_diff_);
  if (added_) {
    added_data_ = bindings.value<void>(*added_);
    if (!added_->shares_diff) added_diff_ = bindings.diff<void>(*added_);
  }
  forward_space_ = bindings.at(forward_workspace_);
  if (dst_diff_) backward_space_ = bindings.at(backward_workspace_);
  for (MadeSums& made : made_) {
    if (made.block) made.values = bindings.at(*made.block);
  }
}

void ConvolutionOp::make_moments(const Planning& planning, int own, int norm) {
  make(made_[moments], planning, planning.forward_time(own), planning.forward_time(norm));
}

void ConvolutionOp::make_slopes(const Planning& planning, int own, BatchNormOp& of, int norm) {
  make(made_[slopes], planning, planning.backward_time(own), planning.backward_time(norm));
  norm_ = &of;
  of.take_slopes_from(*this);
}

/// They live from one time to the other.
void ConvolutionOp::make(MadeSums& made, const Planning& planning, int begin, int end) {
  if (!made.block) {
    std::size_t most = 0;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      most = std::max(most, made.of(of_images(window_, planning.sizes[i]), plans_[i]).count());
    }
    made.block = planning.memory.add(most * sizeof(float), begin);
  }
  planning.memory.use(*made.block, end);
}

/// How they are cut does not depend on the images.
bool ConvolutionOp::makes(Beside which, const ConvolutionPlan& plan) const {
  return made_[which].block && made_[which].of(window_, plan).parts > 0;
}

ChannelSums ConvolutionOp::sums(Beside which, const Execution& execution) const {
  const MadeSums& made = made_[which];
  if (!made.values || execution.pass.phase != compute::Phase::train) return {};
  ChannelSums sums = made.of(of_images(window_, execution.images), plans_[execution.size]);
  if (sums.parts > 0) sums.values = made.values;
  return sums;
}

/// Tiles that a usual pass might have.
void ConvolutionOp::plan_trials(const Planning& planning) {
  usual_ = planning.usual();
  const WindowShape window = of_images(window_, usual_);
  const ConvolutionPlan rule = plan_convolution(window, numbers(), planning.multiprocessors);
  ByProduct<std::vector<TileShape>> tiles;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const TileShape& own = (rule.*kPlannedProducts[i].plan).tile;
    tiles[i].push_back(own);
    std::ranges::copy_if(kTiles, std::back_inserter(tiles[i]), [&](const TileShape& tile) {
      return tile != own && may_take(window, rule, i, tile);
    });
    tries_ = tries_ || tiles[i].size() > 1;
  }
  if (!tries_) return;
  trials_.emplace(tiles);
  time(false);
}

/// What is not made has the rule's.
bool ConvolutionOp::may_take(const WindowShape& window, const ConvolutionPlan& plan,
                             std::size_t product, const TileShape& tile) const {
  const bool fixed[] = {makes(moments, plan), makes(slopes, plan) || !src_.wants_diff,
                        !dst_.wants_diff};
  return cuda::may_take(window, plan, kPlannedProducts[product], tile, numbers(), fixed[product]);
}

void ConvolutionOp::time(bool on) {
  times_layers_ = on;
  DeviceOp::time(on || tries_);
}

/// A pass begins. The host waits for times of the one before if that was a trial: one of the
/// largest passes.
void ConvolutionOp::begin_trial(const Execution& execution) {
  if (!tries_) return;
  collect_times();
  ByProduct<double> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double now = time_.*compute::kLayerDirections[i].seconds;
    seconds[i] = now - std::exchange(spent_[i], now);
  }
  if (is_trial_ && trials_->trying()) trials_->note(seconds);
  tries_ = trials_->trying();
  is_trial_ = tries_ && execution.most_images && execution.pass.phase == compute::Phase::train;
  if (!tries_) time(times_layers_);
}

void ConvolutionOp::forward(const Execution& execution) {
  begin_trial(execution);
  timed(forward_time_, [&] {
    convolution_forward(stream(), call(execution, forward_space_), src_data_, kernel_.weights,
                        kernel_.bias, added_data_, dst_data_, sums(moments, execution));
  });
}

void ConvolutionOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  const ConvolutionCall backward_call = call(execution, backward_space_);
  if (kernel_.diff_weights) {
    timed(weights_time_, [&] {
      convolution_backward_weights(stream(), backward_call, src_data_, dst_diff_,
                                   kernel_.diff_weights, kernel_.diff_bias, execution.adds());
    });
  }
  if (!added_diff_ && !src_diff_) return;
  timed(data_time_, [&] {
    if (added_diff_) {
      pass_on(stream(), numbers(), dst_.count(execution.images), dst_diff_, added_diff_,
              added_->adds);
    }
    if (src_diff_) {
      convolution_backward_data(
          stream(), backward_call, dst_diff_, kernel_.weights, src_diff_, src_.adds,
          norm_ ? norm_->slopes(sums(slopes, execution), execution) : NormSlopes{});
    }
  });
}

/// Passes of few images have the rule's tiles: those that were found are for many.
ConvolutionCall ConvolutionOp::call(const Execution& execution, float* workspace) const {
  const WindowShape window = of_images(window_, execution.images);
  const ConvolutionPlan& rule = plans_[execution.size];
  ConvolutionCall call{numbers(), window, rule, workspace};
  if (!trials_ || 2 * execution.images <= usual_) return call;
  for (std::size_t i = 0; i < std::size(kPlannedProducts); ++i) {
    const TileShape& tile = trials_->tile(i);
    if (!may_take(window, rule, i, tile)) continue;
    GemmPlan& plan = call.plan.*kPlannedProducts[i].plan;
    plan = plan_by_tile(kPlannedProducts[i].extent(window), tile, plan.slices);
  }
  return call;
}

GroupedConvolutionOp::GroupedConvolutionOp(const Planning& planning, int op,
                                           const model::Graph::Node& node,
                                           const model::ZeroPad* zeros, const Source& src,
                                           const Activation& dst, std::size_t parameter)
    : UnaryOp(planning, op, src, dst, planning, node.name, "direct, by group",
              macs_of(node, zeros, src.layout.shape)),
      kernel_(planning, node, parameter) {
  const auto& layer = std::get<model::Convolution>(node.layer);
  shape_ = {.window = window_of(node, zeros, src, dst),
            .channels = src.layout.shape.channels,
            .filters = layer.filters,
            .groups = layer.groups};
  check_weights(node, shape_);
  if (!planning.training()) return;
  std::int64_t sums = 0;
  for (const int images : planning.sizes) {
    const GroupedShape shape = of_images(images);
    slices_.push_back(grouped_slices(planning.numbers, shape, planning.multiprocessors));
    sums = std::max(sums, grouped_sums(shape, slices_.back()));
  }
  sums_ = planning.memory.add(to_size(sums) * sizeof(float), planning.backward_time(op));
  planning.memory.use(src.value, planning.backward_time(op));
}

Formats GroupedConvolutionOp::formats() const {
  return kernel_.formats(PaddedFormat::of_groups(shape_.rows(), shape_.filters), shape_.filters);
}

void GroupedConvolutionOp::bind(const Bindings& bindings) {
  UnaryOp::bind(bindings);
  kernel_.bind(bindings, dst_diff_);
  if (dst_diff_) sums_data_ = bindings.at(sums_);
}

void GroupedConvolutionOp::forward(const Execution& execution) {
  timed(forward_time_, [&] {
    grouped_forward(stream(), numbers(), of_images(execution.images), src_data_, kernel_.weights,
                    kernel_.bias, dst_data_);
  });
}

void GroupedConvolutionOp::backward(const Execution& execution) {
  if (!dst_diff_) return;
  if (kernel_.diff_weights) {
    timed(weights_time_, [&] {
      grouped_backward_weights(stream(), numbers(), of_images(execution.images),
                               slices_[execution.size], src_data_, dst_diff_, sums_data_,
                               kernel_.diff_weights, kernel_.diff_bias, execution.adds());
    });
  }
  if (src_diff_) {
    timed(data_time_, [&] {
      grouped_backward_data(stream(), numbers(), of_images(execution.images), dst_diff_,
                            kernel_.weights, src_diff_, src_.adds);
    });
  }
}

GroupedShape GroupedConvolutionOp::of_images(int images) const {
  GroupedShape shape = shape_;
  shape.window.images = images;
  return shape;
}

}  // namespace cputrain::cuda
