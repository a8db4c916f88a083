#include "backends/cpu/compile.h"

#include <algorithm>

#include "backends/cpu/convolution/convolution_op.h"
#include "backends/cpu/ops/batch_norm_op.h"
#include "backends/cpu/ops/dense_op.h"
#include "backends/cpu/ops/elementwise_ops.h"
#include "backends/cpu/ops/input_op.h"
#include "backends/cpu/ops/loss_op.h"
#include "backends/cpu/ops/pool_op.h"
#include "backends/cpu/ops/sharded_dense_op.h"
#include "backends/cpu/ops/sum_and_pad_ops.h"
#include "compute/executor/graph_walk.h"
#include "core/error.h"

namespace cputrain::cpu {
namespace {

using compute::TrackedActivation;

/// Makes the operators as it walks the nodes. A dense layer needs no flattened copy: it knows the
/// layout of what it reads.
class OpMaker {
 public:
  OpMaker(const model::Graph& graph, const Planning& planning)
      : planning_(planning), block_(preferred_block()), walk_(graph) {}

  compute::OpList make() {
    input_layer_ = &std::get<model::Input>(walk_.node().layer);
    const Activation pixels = new_activation({walk_.node().dst, 1}, false);
    auto input = std::make_unique<InputOp>(planning_, walk_.node(), pixels);
    input_op_ = input.get();
    list_.ops.push_back(std::move(input));
    for (walk_.advance(); !walk_.ended(); walk_.advance()) make_op();
    return std::move(list_);
  }

 private:
  const model::Graph::Node& node() const { return walk_.node(); }
  int next_op() const { return static_cast<int>(list_.ops.size()); }
  TrackedActivation& input(std::size_t i = 0) { return walk_.input(i); }

  /// The node's output, which the operator made next will write.
  Activation new_activation(const compute::SampleLayout& layout, bool wants_diff) {
    walk_.place(planning_.add_activation(layout, wants_diff), next_op());
    return walk_.newest();
  }

  /// The operator made next reads it.
  Source read(TrackedActivation& tracked) { return walk_.read(tracked, next_op()); }

  bool small_max_pool_is_next() const {
    const auto* pool = walk_.only_next_is<model::MaxPool>();
    return pool && pool->size <= MaxPoolShape::kLargestSize;
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
                   [&](const model::Add&) { add(); },
                   [&](const model::Relu&) { in_place<ReluOp>(); },
                   [&](const model::Dropout&) { in_place<DropoutOp>(); },
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
    const Source src = read(from);
    const bool wants_diff = src.wants_diff || !block.convolution->frozen;
    const Activation dst = new_activation({node().dst, block_}, wants_diff);
    walk_.newest().diff_changes = block.relu;
    walk_.newest().zeros_are_dead = block.relu || block.pooled_relu;
    list_.ops.push_back(
        std::make_unique<ConvolutionOp>(planning_, next_op(), block, src, dst, parameter_));
    parameter_ += block.convolution->parameters.size();
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
    const Activation dst = new_activation({node().dst, src.layout.block}, src.wants_diff);
    list_.ops.push_back(std::make_unique<PadOp>(planning_, next_op(), node(), src, dst));
  }

  void batch_norm() {
    check_not_flattened();
    const model::Graph::Node& own = node();
    TrackedActivation& from = input();
    const bool relu = walk_.only_next_is<model::Relu>() != nullptr;
    if (relu) walk_.advance();
    const Source src = read(from);
    const Activation dst = new_activation(src.layout, src.wants_diff || !own.frozen);
    walk_.newest().zeros_are_dead = relu;
    list_.ops.push_back(
        std::make_unique<BatchNormOp>(planning_, next_op(), own, relu, src, dst, parameter_));
    parameter_ += own.parameters.size();
  }

  void dense(const model::Dense& layer) {
    const bool zeros_are_dead = input().zeros_are_dead;
    const Source src = read(input());
    const Activation dst =
        new_activation({{1, 1, layer.units}, 1}, src.wants_diff || !node().frozen);
    if (layer.sharded) {
      list_.ops.push_back(std::make_unique<ShardedDenseOp>(planning_, next_op(), node(), src, dst,
                                                           parameter_, zeros_are_dead));
    } else {
      list_.ops.push_back(std::make_unique<DenseOp>(planning_, next_op(), node(), src, dst,
                                                    parameter_, zeros_are_dead));
    }
    parameter_ += node().parameters.size();
  }

  void pool() {
    check_not_flattened();
    // The maximum of a ReLU's outputs is zero only where all of them are.
    const bool zeros_are_dead =
        std::holds_alternative<model::MaxPool>(node().layer) && input().zeros_are_dead;
    const Source src = read(input());
    const Activation dst = new_activation({node().dst, src.layout.block}, src.wants_diff);
    walk_.newest().zeros_are_dead = zeros_are_dead;
    list_.ops.push_back(std::make_unique<PoolOp>(planning_, next_op(), node(), src, dst));
  }

  void add() {
    std::vector<std::size_t> inputs;
    std::vector<compute::SumPart> parts;
    bool wants_diff = false;
    for (std::size_t i = 0; i < node().src.size(); ++i) {
      check_not_flattened(i);
      inputs.push_back(walk_.input_index(i));
      parts.push_back({read(input(i))});
      wants_diff |= parts.back().src.wants_diff;
      check_same_memory(parts.front().src.layout, parts.back().src.layout);
    }
    const Activation dst = new_activation(parts.front().src.layout, wants_diff);
    walk_.share_gradient(planning_.memory, inputs, parts);
    list_.ops.push_back(
        std::make_unique<AddOp>(planning_, next_op(), node().name, std::move(parts), dst));
  }

  void check_same_memory(const compute::SampleLayout& a, const compute::SampleLayout& b) const {
    const bool vectors = a.shape.height == 1 && a.shape.width == 1 && !a.padded() && !b.padded();
    if (a.block == b.block || vectors) return;
    fail(ExitCode::usage, "layer " + node().name +
                              " adds maps that lie differently in memory (one " +
                              "is the image, or a dense layer's); use --backend reference");
  }

  /// Only the single reader of an activation may change it; where there are others it changes a
  /// copy.
  template <class O>
  void in_place() {
    if (input().shared) {
      const Source src = read(input());
      const Activation copy = new_activation(src.layout, src.wants_diff);
      list_.ops.push_back(std::make_unique<AddOp>(planning_, next_op(), node().name + " (copy)",
                                                  std::vector{compute::SumPart{src}}, copy));
    }
    TrackedActivation& tracked = walk_.change_in_place(next_op());
    tracked.zeros_are_dead |= std::is_same_v<O, ReluOp>;  // dropout's zeros are, too
    list_.ops.push_back(std::make_unique<O>(planning_, next_op(), node(), tracked));
  }

  void loss() {
    auto op = std::make_unique<LossOp>(planning_, next_op(), node(), input());
    list_.loss = op.get();
    list_.ops.push_back(std::move(op));
  }

  const Planning& planning_;
  int block_;
  compute::GraphWalk walk_;
  std::size_t parameter_ = 0;
  const model::Input* input_layer_ = nullptr;
  InputOp* input_op_ = nullptr;
  compute::OpList list_;
};

}  // namespace

compute::OpList make_ops(const model::Graph& graph, const Planning& planning) {
  return OpMaker(graph, planning).make();
}

}  // namespace cputrain::cpu
