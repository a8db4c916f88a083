#include "backends/cpu/compile.h"

#include <algorithm>
#include <map>

#include "backends/cpu/convolution/convolution_choice.h"
#include "backends/cpu/convolution/convolution_op.h"
#include "backends/cpu/ops/batch_norm_op.h"
#include "backends/cpu/ops/concat_op.h"
#include "backends/cpu/ops/dense_op.h"
#include "backends/cpu/ops/elementwise_ops.h"
#include "backends/cpu/ops/input_op.h"
#include "backends/cpu/ops/layer_norm_op.h"
#include "backends/cpu/ops/loss_op.h"
#include "backends/cpu/ops/pool_op.h"
#include "backends/cpu/ops/sharded_dense_op.h"
#include "backends/cpu/ops/sum_and_pad_ops.h"
#include "backends/cpu/ops/widen_op.h"
#include "compute/executor/graph_walk.h"
#include "core/casts.h"
#include "core/error.h"
#include "model/layer_patterns.h"

namespace cputrain::cpu {
namespace {

using compute::TrackedActivation;

/// Makes the operators as it walks the nodes. A dense layer needs no flattened copy: it knows the
/// layout of what it reads.
class OpMaker {
 public:
  OpMaker(const model::Graph& graph, const Planning& planning)
      : planning_(planning),
        block_(block_of_maps(planning.kernels)),
        map_element_(has_narrow_maps(graph, planning.kernels) ? sizeof(Bf16) : sizeof(float)),
        walk_(graph),
        cuts_(model::frozen_cuts(graph)) {}

  MadeOps make() {
    input_layer_ = &std::get<model::Input>(walk_.node().layer);
    const Activation pixels = new_activation({walk_.node().dst, 1}, false);
    auto input = std::make_unique<InputOp>(planning_, walk_.node(), pixels);
    input_op_ = input.get();
    ops_.push_back(std::move(input));
    for (walk_.advance(); !walk_.ended(); walk_.advance()) {
      make_op();
      note_frozen_end();
    }
    return {std::move(ops_), frozen_end_};
  }

 private:
  const model::Graph::Node& node() const { return walk_.node(); }
  int next_op() const { return to_int(ops_.size()); }
  TrackedActivation& input(std::size_t i = 0) { return walk_.input(i); }

  /// Behind the operator of this node, and of those before that it did as well.
  void note_frozen_end() {
    const int index = walk_.index();
    if (!std::ranges::binary_search(cuts_, index)) return;
    frozen_end_ = {ops_.size(), index, walk_.output_of(index)};
  }

  /// The node's output, which the operator made next will write.
  Activation new_activation(const compute::SampleLayout& layout, bool wants_diff,
                            std::size_t element = sizeof(float)) {
    walk_.place(planning_.add_activation(layout, wants_diff, element), next_op());
    return walk_.newest();
  }

  /// Adds an operator for the numbers of an activation; it is given the rest.
  template <template <class> class O, class... Arguments>
  void push(const Activation& activation, Arguments&&... arguments) {
    if (is_narrow(activation)) {
      ops_.push_back(std::make_unique<O<Bf16>>(planning_, next_op(), arguments...));
    } else {
      ops_.push_back(std::make_unique<O<float>>(planning_, next_op(), arguments...));
    }
  }

  /// As read(), for an operator that knows only floats; one before it makes them.
  Source read_floats(TrackedActivation& tracked) {
    const Source src = read(tracked);
    if (!is_narrow(src)) return src;
    const Activation floats = planning_.add_activation(src.layout, src.wants_diff);
    ops_.push_back(
        std::make_unique<WidenOp>(planning_, next_op(), node().name + " (floats)", src, floats));
    return {floats, false};
  }

  /// The operator made next reads it.
  Source read(TrackedActivation& tracked) { return walk_.read(tracked, next_op()); }

  bool small_max_pool_is_next() const {
    const auto* pool = walk_.only_next_is<model::MaxPool>();
    return pool && pool->size <= MaxPoolShape::kLargestSize && map_element_ == sizeof(float);
  }

  /// Operators that work channel by channel need the map's own shape.
  void check_not_flattened(std::size_t i = 0) const {
    if (!walk_.reads_flattened(i)) return;
    fail(ExitCode::usage, "layer " + node().name + " reads a flattened map (the cpu backend lets " +
                              "dense layers, ReLU and dropout do that); use --backend reference");
  }

  void make_op() {
    const Shape read = walk_.src_shape();
    std::visit(Overloaded{
                   [&](const model::Convolution& l) {
                     convolution(node(),
                                 model::pad_amount(l.padding, read.height, l.kernel, l.stride),
                                 model::pad_amount(l.padding, read.width, l.kernel, l.stride));
                   },
                   [&](const model::ZeroPad& l) { zero_pad(l); },
                   [&](const model::Dense& l) { dense(l); },
                   [&](const model::MaxPool&) { pool(); },
                   [&](const model::AveragePool&) { pool(); },
                   [&](const model::GlobalAveragePool&) { pool(); },
                   [&](const model::BatchNorm&) { batch_norm(); },
                   [&](const model::LayerNorm&) { layer_norm(); },
                   [&](const model::Add&) { add(); },
                   [&](const model::Relu& l) { rectify(l); },
                   [&](const model::Relu6& l) { rectify(l).numbers_matter = true; },
                   [&](const model::LeakyRelu& l) { rectify(l); },
                   [&](const model::Silu&) { silu(); },
                   [&](const model::Dropout&) { dropout(); },
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

  /// `first` is this node, or the one before it whose padding the convolution does as well.
  void convolution(const model::Graph::Node& first, const model::PadAmount& rows,
                   const model::PadAmount& columns) {
    check_not_flattened();
    TrackedActivation& from = walk_.output_of(first.src.front());
    ConvolutionBlock block{.convolution = &node(),
                           .src_shape = from.layout.shape,
                           .rows = rows,
                           .columns = columns,
                           .macs = model::macs(node().layer, walk_.src_shape())};
    if (walk_.only_next_is<model::Relu>()) {
      walk_.advance();
      block.relu = true;
    } else if (small_max_pool_is_next()) {
      walk_.advance();
      block.pool = &node();
      if (walk_.only_next_is<model::Relu>()) {
        walk_.advance();
        block.pooled_relu = true;
      }
    }
    if (from.producer == 0 && !from.shared && from.last_touch < 0) {
      block.image = input_layer_;
      input_op_->leave_to_reader();
    }
    MapListener* const norm = norm_of_gradient(from);
    const std::optional<std::size_t> other = other_part(block, from);
    const Source src = read(from);
    std::vector<std::size_t> inputs;
    std::vector<Source> added;
    if (other) {
      walk_.advance();
      block.sum = &node();
      check_not_flattened(*other);
      inputs.push_back(walk_.input_index(*other));
      added.push_back(read(input(*other)));
    }
    const bool part_learns = other && added.front().wants_diff;
    const bool wants_diff = src.wants_diff || !block.convolution->frozen || part_learns;
    const Activation dst = new_activation({node().dst, block_}, wants_diff, map_element_);
    if (other) check_same_memory(dst.layout, added.front().layout);
    walk_.newest().diff_changes = block.relu;
    walk_.newest().zeros_are_dead = block.relu || block.pooled_relu;
    walk_.share_gradient(planning_.memory, inputs, added);
    auto op =
        std::make_unique<ConvolutionOp>(planning_, next_op(), block, src, added, dst, parameter_);
    if (norm) op->tell_of_source_gradient(*norm);
    convolutions_[next_op()] = op.get();
    ops_.push_back(std::move(op));
    parameter_ += block.convolution->parameters.size();
  }

  /// Which input of the next node, a sum, the convolution adds as it goes on. Not its own source,
  /// to whose gradient it adds while it still reads that of the sum.
  std::optional<std::size_t> other_part(const ConvolutionBlock& block,
                                        const TrackedActivation& source) const {
    if (block.relu || block.pool) return std::nullopt;
    const auto other = walk_.only_next_adds();
    if (!other || &walk_.input_of_next(*other) == &source) return std::nullopt;
    return other;
  }

  /// The normalization that made an activation, where the operator made next writes its gradient
  /// last on the way back and nothing changes that.
  MapListener* norm_of_gradient(const TrackedActivation& of) const {
    const auto found = norms_.find(of.producer);
    return found == norms_.end() || of.changed || of.last_touch >= 0 ? nullptr : found->second;
  }

  /// The convolution that made an activation as it is.
  ConvolutionOp* convolution_of(const TrackedActivation& of) const {
    const auto found = convolutions_.find(of.producer);
    return found == convolutions_.end() || of.changed ? nullptr : found->second;
  }

  /// A convolution behind the zeros can see to them itself.
  void zero_pad(const model::ZeroPad& pad) {
    check_not_flattened();
    if (const auto* next = walk_.only_next_is<model::Convolution>()) {
      const int most = std::max({pad.top, pad.bottom, pad.left, pad.right});
      if (next->padding == model::Padding::valid && most < next->kernel) {
        const model::Graph::Node& first = node();
        walk_.advance();
        return convolution(first, {pad.top, pad.bottom}, {pad.left, pad.right});
      }
    }
    const Source src = read(input());
    const Activation dst =
        new_activation({node().dst, src.layout.block}, src.wants_diff, src.element);
    push<PadOp>(dst, node(), src, dst);
  }

  void batch_norm() {
    check_not_flattened();
    const model::Graph::Node& own = node();
    TrackedActivation& from = input();
    const bool relu = walk_.only_next_is<model::Relu>() != nullptr;
    if (relu) walk_.advance();
    // What frozen layers compute may be kept, and then they run for some of the images alone.
    const bool kept = frozen_end_ && to_size(from.producer) < frozen_end_->ops;
    ConvolutionOp* const writer = kept ? nullptr : convolution_of(from);
    const Source src = read(from);
    const Activation dst = new_activation(src.layout, src.wants_diff || !own.frozen, src.element);
    walk_.newest().zeros_are_dead = relu;
    push<BatchNormOp>(dst, own, relu, src, dst, parameter_);
    auto& op = dynamic_cast<MapListener&>(*ops_.back());
    norms_[next_op() - 1] = &op;
    if (writer) writer->tell_of_value(op);
    parameter_ += own.parameters.size();
  }

  void layer_norm() {
    check_not_flattened();
    const bool learns = !node().parameters.empty() && !node().frozen;
    const Source src = read(input());
    const Activation dst = new_activation(src.layout, src.wants_diff || learns, src.element);
    push<LayerNormOp>(dst, node(), src, dst, parameter_);
    parameter_ += node().parameters.size();
  }

  void dense(const model::Dense& layer) {
    const bool zeros_are_dead = input().zeros_are_dead;
    const Source src = read_floats(input());
    const Activation dst =
        new_activation({{1, 1, layer.units}, 1}, src.wants_diff || !node().frozen);
    if (layer.sharded) {
      ops_.push_back(std::make_unique<ShardedDenseOp>(planning_, next_op(), node(), src, dst,
                                                      parameter_, zeros_are_dead));
    } else {
      ops_.push_back(std::make_unique<DenseOp>(planning_, next_op(), node(), src, dst, parameter_,
                                               zeros_are_dead));
    }
    parameter_ += node().parameters.size();
  }

  void pool() {
    check_not_flattened();
    // The maximum of a ReLU's outputs is zero only where all of them are.
    const bool zeros_are_dead =
        std::holds_alternative<model::MaxPool>(node().layer) && input().zeros_are_dead;
    const Source src = read(input());
    const Activation dst =
        new_activation({node().dst, src.layout.block}, src.wants_diff, src.element);
    walk_.newest().zeros_are_dead = zeros_are_dead;
    push<PoolOp>(dst, node(), src, dst);
  }

  void add() {
    std::vector<std::size_t> inputs;
    std::vector<Source> parts;
    bool wants_diff = false;
    for (std::size_t i = 0; i < node().src.size(); ++i) {
      check_not_flattened(i);
      inputs.push_back(walk_.input_index(i));
      parts.push_back(read(input(i)));
      wants_diff |= parts.back().wants_diff;
      check_same_memory(parts.front().layout, parts.back().layout);
    }
    const Source& first = parts.front();
    const Activation dst = new_activation(first.layout, wants_diff, first.element);
    walk_.share_gradient(planning_.memory, inputs, parts);
    push<AddOp>(dst, node().name, parts, dst);
  }

  static bool is_vector(const compute::SampleLayout& layout) {
    return layout.shape.height == 1 && layout.shape.width == 1 && !layout.padded();
  }

  void check_same_memory(const compute::SampleLayout& a, const compute::SampleLayout& b) const {
    if (a.block == b.block || (is_vector(a) && is_vector(b))) return;
    fail(ExitCode::usage, "layer " + node().name +
                              " reads maps that lie differently in memory (one " +
                              "is the image, or a dense layer's); use --backend reference");
  }

  void concat() {
    std::vector<Source> parts;
    bool wants_diff = false, vectors = true;
    for (std::size_t i = 0; i < node().src.size(); ++i) {
      check_not_flattened(i);
      parts.push_back(read(input(i)));
      wants_diff |= parts.back().wants_diff;
      // Those of 16 bits stay in blocks of 16, which loops over them need.
      vectors &= is_vector(parts.back().layout) && !is_narrow(parts.back());
      check_same_memory(parts.front().layout, parts.back().layout);
    }
    const Source& first = parts.front();
    const Activation dst =
        new_activation({node().dst, vectors ? 1 : first.layout.block}, wants_diff, first.element);
    push<ConcatOp>(dst, node().name, parts, dst);
  }

  void silu() {
    const Source src = read(input());
    const Activation dst = new_activation(src.layout, src.wants_diff, src.element);
    walk_.keep_flattened();
    push<SiluOp>(dst, node(), src, dst);
  }

  /// Only the single reader of an activation may change it; where there are others it changes a
  /// copy. `keeps_numbers`: it leaves those alone that a rectifier before it must find again.
  TrackedActivation& change_in_place(bool keeps_numbers) {
    if (input().shared || (input().numbers_matter && !keeps_numbers)) {
      const Source src = read(input());
      const Activation copy = new_activation(src.layout, src.wants_diff, src.element);
      push<AddOp>(copy, node().name + " (copy)", std::vector{src}, copy);
    }
    return walk_.change_in_place(next_op());
  }

  TrackedActivation& rectify(const model::Rectifier& layer) {
    TrackedActivation& tracked = change_in_place(true);
    tracked.zeros_are_dead |= model::facts_of(node().layer).dies_at_zero;
    push<RectifierOp>(tracked, node(), layer, tracked);
    return tracked;
  }

  /// Its own zeros are dead, too.
  void dropout() {
    const TrackedActivation& tracked = change_in_place(false);
    push<DropoutOp>(tracked, node(), tracked);
  }

  void loss() {
    const Source logits = read_floats(input());
    ops_.push_back(std::make_unique<LossOp>(planning_, next_op(), node(), logits));
  }

  const Planning& planning_;
  int block_;
  std::size_t map_element_;  ///< bytes of a number of what convolutions write
  compute::GraphWalk walk_;
  std::size_t parameter_ = 0;
  const model::Input* input_layer_ = nullptr;
  InputOp* input_op_ = nullptr;
  std::map<int, ConvolutionOp*> convolutions_;  ///< by operator
  std::map<int, MapListener*> norms_;
  compute::OpList ops_;
  std::vector<int> cuts_;  ///< model::frozen_cuts(), ascending
  std::optional<compute::FrozenEnd> frozen_end_;
};

}  // namespace

MadeOps make_ops(const model::Graph& graph, const Planning& planning) {
  return OpMaker(graph, planning).make();
}

}  // namespace cputrain::cpu
