#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/ops/convolution_op.h"
#include "backends/cuda/ops/elementwise_ops.h"
#include "backends/cuda/ops/first_block_op.h"
#include "backends/cuda/ops/loss_op.h"
#include "backends/cuda/ops/norm_ops.h"
#include "backends/cuda/ops/pool_op.h"
#include "compute/executor/graph_walk.h"
#include "core/casts.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// Makes the operators as it walks the nodes.
class OpMaker {
 public:
  OpMaker(const model::Graph& graph, const Planning& planning)
      : planning_(planning), walk_(graph) {}

  compute::OpList make() {
    input();
    for (walk_.advance(); !walk_.ended(); walk_.advance()) make_op();
    for (int op = 0; op < next_op(); ++op) {
      auto* const norm = dynamic_cast<BatchNormOp*>(ops_[to_size(op)].get());
      if (norm) norm->plan_slopes(planning_, op);
      auto* const product = dynamic_cast<ConvolutionOp*>(ops_[to_size(op)].get());
      if (product && planning_.measures && planning_.training()) product->plan_trials(planning_);
    }
    return std::move(ops_);
  }

 private:
  const model::Graph::Node& node() const { return walk_.node(); }
  int next_op() const { return to_int(ops_.size()); }
  /// Adds an operator; it is given the rest.
  template <class O, class... Arguments>
  void push(Arguments&&... arguments) {
    ops_.push_back(
        std::make_unique<O>(planning_, next_op(), std::forward<Arguments>(arguments)...));
  }
  Source read_input() { return walk_.read(walk_.input(), next_op()); }

  /// The node's output, which the operator made next will write.
  Activation new_activation(const Shape& shape, bool wants_diff) {
    check_positions(shape);
    const std::size_t element = stored_bytes(planning_.numbers);
    walk_.place(planning_.add_activation(channels_last(shape), wants_diff, element), next_op());
    return walk_.newest();
  }

  void check_positions(const Shape& shape) const {
    if (std::max(shape.height, shape.width) > kLargestSide) {
      fail(ExitCode::usage,
           fmt::format("layer {}: a map of {} x {} (a side has at most {} positions in kernels of "
                       "--backend cuda); use a smaller --image-size",
                       node().name, shape.height, shape.width, kLargestSide));
    }
    const double numbers = to_double(shape.height) * shape.width * padded_channels(shape.channels) *
                           planning_.largest();
    const double bytes = numbers * to_double(stored_bytes(planning_.numbers));
    if (bytes <= double{kMostChunks} * kChunkBytes) return;
    fail(ExitCode::usage,
         fmt::format("layer {}: {} images of {} x {} x {} at once (a map has at most 32 GiB, since "
                     "kernels of --backend cuda count its pieces of 16 bytes in 31 bits); use a "
                     "smaller --micro-batch",
                     node().name, planning_.largest(), shape.height, shape.width, shape.channels));
  }

  /// The image as a map, or the whole first block, where one operator makes it of bytes.
  void input() {
    const model::Graph::Node& pixels = node();
    check_positions(pixels.dst);
    if (const auto* const first = take_first_block(walk_)) {
      const Activation dst = new_activation(node().dst, !first->frozen);
      push<FirstBlockOp>(pixels, *first, dst, parameter_);
      parameter_ += first->parameters.size();
    } else {
      pairs_ = PixelPairs::of(walk_);
      const Activation dst = new_activation(pairs_ ? pairs_->map() : pixels.dst, false);
      ops_.push_back(std::make_unique<InputOp>(planning_, pixels, pairs_, dst));
    }
  }

  void make_op() {
    std::visit(Overloaded{
                   [&](const model::Convolution&) {
                     check_not_flattened();
                     convolution(nullptr);
                   },
                   [&](const model::Dense& l) { dense(l); },
                   [&](const model::MaxPool&) { pool(); },
                   [&](const model::AveragePool&) { pool(); },
                   [&](const model::GlobalAveragePool&) { pool(); },
                   [&](const model::Relu& l) { rectify(l); },
                   [&](const model::Relu6& l) { rectify(l).numbers_matter = true; },
                   [&](const model::LeakyRelu& l) { rectify(l); },
                   [&](const model::Silu&) { silu(); },
                   [&](const model::Dropout&) { push<DropoutOp>(node(), change_in_place(false)); },
                   [&](const model::BatchNorm&) { batch_norm(); },
                   [&](const model::LayerNorm&) { layer_norm(); },
                   [&](const model::Add&) { add(); },
                   [&](const model::ZeroPad& l) { zero_pad(l); },
                   [&](const model::Concat&) { concat(); },
                   [&](const model::Flatten&) { walk_.flatten(); },
                   [&](const model::SigmoidCrossEntropy&) { loss(); },
                   [&](const model::SoftmaxCrossEntropy&) { loss(); },
                   [&](const model::Input&) {
                     fail(ExitCode::usage, "a second input (only the first node may be one)");
                   },
               },
               node().layer);
  }

  /// Most operators need the map's own shape.
  void check_not_flattened(std::size_t i = 0) const {
    if (!walk_.reads_flattened(i)) return;
    fail(ExitCode::usage,
         fmt::format("layer {} reads a flattened map (on --backend cuda dense layers, ReLU and "
                     "dropout may); use --backend reference",
                     node().name));
  }

  /// `zeros`: of the node before this one, which has no operator.
  void convolution(const model::Graph::Node* zeros) {
    const model::Graph::Node& own = node();
    compute::TrackedActivation& from = input_behind(zeros);
    BatchNormOp* const norm = norm_before(from);
    const int producer = from.producer;
    const Source src = walk_.read(from, next_op());
    const auto* layer = std::get_if<model::Convolution>(&own.layer);
    const bool grouped = layer && layer->groups != 1;
    // A sum behind it is its epilogue's. Not of its source, to whose gradient it adds while it
    // still reads that of the sum.
    const auto other = walk_.only_next_adds();
    Parts added;
    if (other && !grouped && &walk_.input_of_next(*other) != &from) added = take_sum(*other);
    const Activation dst =
        new_activation(own.dst, src.wants_diff || !own.frozen || added.want_diff);
    walk_.share_gradient(planning_.memory, added.inputs, added.sources);
    if (grouped) {
      push<GroupedConvolutionOp>(own, pad_of(zeros), src, dst, parameter_);
    } else {
      auto made = std::make_unique<ConvolutionOp>(planning_, next_op(), own, pad_of(zeros), src,
                                                  added.first(), dst, parameter_,
                                                  producer == 0 ? pairs_ : std::nullopt);
      if (norm) made->make_slopes(planning_, next_op(), *norm, producer);
      ops_.push_back(std::move(made));
    }
    parameter_ += own.parameters.size();
  }

  /// The batch norm that wrote what a product, the operator made next, is the first to read: the
  /// last that writes its gradient. A dense layer reads all of a map as one position's channels.
  BatchNormOp* norm_before(const compute::TrackedActivation& read) {
    const Shape& map = read.layout.shape;
    const bool as_vector = std::holds_alternative<model::Dense>(node().layer);
    if (read.has_reader || read.changed || (as_vector && map.height * map.width > 1)) {
      return nullptr;
    }
    auto* const norm = dynamic_cast<BatchNormOp*>(ops_[to_size(read.producer)].get());
    return norm && norm->sums_slopes() ? norm : nullptr;
  }

  void dense(const model::Dense& layer) {
    if (layer.sharded) {
      fail(ExitCode::usage,
           fmt::format("layer {}: --backend cuda shards no dense layer (each rank has a device "
                       "of its own); leave --shard-dense out",
                       node().name));
    }
    convolution(nullptr);
  }

  void pool(const model::Graph::Node* zeros = nullptr) {
    check_not_flattened();
    const model::Graph::Node& own = node();
    const Source src = walk_.read(input_behind(zeros), next_op());
    const bool relu = std::holds_alternative<model::MaxPool>(own.layer) &&
                      walk_.only_next_is<model::Relu>() != nullptr;
    if (relu) walk_.advance();
    const Activation dst = new_activation(own.dst, src.wants_diff);
    push<PoolOp>(own, pad_of(zeros), relu, src, dst);
  }

  /// What the node reads, or what the zeros before it surround.
  compute::TrackedActivation& input_behind(const model::Graph::Node* zeros) {
    return zeros ? walk_.output_of(zeros->src.front()) : walk_.input();
  }
  static const model::ZeroPad* pad_of(const model::Graph::Node* zeros) {
    return zeros ? &std::get<model::ZeroPad>(zeros->layer) : nullptr;
  }

  /// Windows of a convolution or a max pool behind the zeros can see to them themselves.
  void zero_pad(const model::ZeroPad& pad) {
    check_not_flattened();
    const model::Graph::Node* zeros = &node();
    const auto* convolves = walk_.only_next_is<model::Convolution>();
    const auto* pools = walk_.only_next_is<model::MaxPool>();
    if (convolves && takes_zeros(*convolves, pad)) {
      walk_.advance();
      return convolution(zeros);
    }
    if (pools && pools->padding == model::Padding::valid) {
      walk_.advance();
      return pool(zeros);
    }
    pool();
  }

  void batch_norm() {
    check_not_flattened();
    const model::Graph::Node& own = node();
    const ConvolutionOp* const producer = own.frozen ? nullptr : make_moments(walk_.input());
    const Source src = read_input();
    AfterBatchNorm after;
    Parts added;
    if (const auto other = walk_.only_next_adds()) added = take_sum(*other);
    after.relu = walk_.only_next_is<model::Relu>() != nullptr;
    if (after.relu) walk_.advance();
    const bool learns = src.wants_diff || !own.frozen;
    const Activation dst = new_activation(own.dst, learns || added.want_diff);
    walk_.newest().diff_changes = after.relu && !added.sources.empty();
    walk_.share_gradient(planning_.memory, added.inputs, added.sources);
    after.added = added.first();
    push<BatchNormOp>(own, after, producer, src, dst, parameter_, moved_);
    parameter_ += own.parameters.size();
  }

  /// The product that writes what a batch norm, the operator made next, reads. It makes moments.
  const ConvolutionOp* make_moments(const compute::TrackedActivation& read) {
    if (!planning_.training() || read.changed) return nullptr;
    auto* const producer = dynamic_cast<ConvolutionOp*>(ops_[to_size(read.producer)].get());
    if (producer) producer->make_moments(planning_, read.producer, next_op());
    return producer;
  }

  void layer_norm() {
    check_not_flattened();
    const bool learns = !node().parameters.empty() && !node().frozen;
    const Source src = read_input();
    const Activation dst = new_activation(node().dst, src.wants_diff || learns);
    push<LayerNormOp>(node(), src, dst, parameter_);
    parameter_ += node().parameters.size();
  }

  /// Parts of a sum or of a concatenation, which the operator made next reads.
  struct Parts {
    std::vector<std::size_t> inputs;  ///< as the walk counts activations
    std::vector<Source> sources;
    bool want_diff = false;

    std::optional<Source> first() const {
      return sources.empty() ? std::nullopt : std::optional(sources.front());
    }
  };
  void take_part(Parts& parts, std::size_t i) {
    check_not_flattened(i);
    parts.inputs.push_back(walk_.input_index(i));
    parts.sources.push_back(walk_.read(walk_.input(i), next_op()));
    parts.want_diff |= parts.sources.back().wants_diff;
  }
  /// The next node is a sum that the operator made next ends with: its other part.
  Parts take_sum(std::size_t other) {
    walk_.advance();
    Parts parts;
    take_part(parts, other);
    return parts;
  }

  Parts take_all() {
    Parts parts;
    for (std::size_t i = 0; i < node().src.size(); ++i) take_part(parts, i);
    return parts;
  }

  void add() {
    Parts parts = take_all();
    const Activation dst = new_activation(node().dst, parts.want_diff);
    walk_.share_gradient(planning_.memory, parts.inputs, parts.sources);
    push<AddOp>(node().name, std::move(parts.sources), dst);
  }

  /// Only the single reader of an activation may change it; where there are others it changes a
  /// copy. `keeps_numbers`: it leaves those alone that a rectifier before it must find again.
  compute::TrackedActivation& change_in_place(bool keeps_numbers) {
    if (walk_.input().shared || (walk_.input().numbers_matter && !keeps_numbers)) {
      const Source src = read_input();
      const Activation copy = new_activation(src.layout.shape, src.wants_diff);
      push<AddOp>(node().name + " (copy)", std::vector{src}, copy);
    }
    return walk_.change_in_place(next_op());
  }

  compute::TrackedActivation& rectify(const Pointwise& layer) {
    compute::TrackedActivation& activation = change_in_place(true);
    push<RectifierOp>(node(), layer, activation);
    return activation;
  }

  void silu() {
    const Source src = read_input();
    const Activation dst = new_activation(src.layout.shape, src.wants_diff);
    walk_.keep_flattened();
    push<SiluOp>(node(), src, dst);
  }

  void concat() {
    Parts parts = take_all();
    const Activation dst = new_activation(node().dst, parts.want_diff);
    push<ConcatOp>(node().name, std::move(parts.sources), dst);
  }

  void loss() {
    if (walk_.input().layout.padded()) check_not_flattened();
    push<LossOp>(node(), walk_.input());
  }

  const Planning& planning_;
  compute::GraphWalk walk_;
  std::optional<PixelPairs> pairs_;  ///< what the input makes
  std::size_t parameter_ = 0;
  std::shared_ptr<MovedStatistics> moved_ = std::make_shared<MovedStatistics>();
  compute::OpList ops_;
};

}  // namespace

compute::OpList make_ops(const model::Graph& graph, const Planning& planning) {
  return OpMaker(graph, planning).make();
}

}  // namespace cputrain::cuda
