#include "backends/cpu/compile.h"

#include <algorithm>
#include <cassert>

#include "backends/cpu/convolution/convolution_step.h"
#include "backends/cpu/ops/batch_norm_step.h"
#include "backends/cpu/ops/dense_step.h"
#include "backends/cpu/ops/elementwise_steps.h"
#include "backends/cpu/ops/input_step.h"
#include "backends/cpu/ops/loss_step.h"
#include "backends/cpu/ops/map_steps.h"
#include "backends/cpu/ops/pool_step.h"
#include "backends/cpu/ops/sharded_dense_step.h"
#include "core/error.h"

namespace cputrain::cpu {
namespace {

/// A map and what the steps made so far do to it.
struct TrackedMap {
  Map map;
  int unread = 0;               ///< readers that have no step yet
  bool shared = false;          ///< has several readers
  bool diff_changes = false;    ///< its gradient is changed in place on the way back
  bool zeros_are_dead = false;  ///< a ReLU made it, so where it is zero its gradient ends
  int producer = 0;             ///< step that writes it
  int last_touch = -1;          ///< last step that changes it in place, or reads it and adds to its
                                ///< gradient; of the maps that share the gradient, too
};

/// Walks the nodes and keeps, for each, the map that holds its output. Flatten needs no step: a
/// dense layer knows the layout of what it reads.
class StepMaker {
 public:
  StepMaker(const model::Graph& graph, const Planning& planning)
      : graph_(graph),
        nodes_(graph.nodes()),
        planning_(planning),
        block_(preferred_block()),
        map_of_(nodes_.size(), -1),
        flat_(nodes_.size()) {}

  std::vector<std::unique_ptr<Step>> make() {
    const Map pixels = new_map({nodes_[0].dst, 1}, false);
    auto input = std::make_unique<InputStep>(planning_, nodes_[0], pixels);
    input_step_ = input.get();
    steps_.push_back(std::move(input));
    for (node_ = 1; node_ < nodes_.size(); ++node_) make_step();
    assert(next_step() <= planning_.most_steps);
    return std::move(steps_);
  }

 private:
  const model::Graph::Node& node() const { return nodes_[node_]; }
  int next_step() const { return static_cast<int>(steps_.size()); }

  /// The map that input number `i` of the node lies in.
  TrackedMap& input(std::size_t i = 0) { return maps_[map_of_[node().src[i]]]; }

  /// Steps that will read the output of a node.
  int count_readers(int index) const {
    int count = 0;
    for (int i = index + 1; i < static_cast<int>(nodes_.size()); ++i) {
      const auto times = std::ranges::count(nodes_[i].src, index);
      const bool passes_on = std::holds_alternative<model::Flatten>(nodes_[i].layer);
      count += static_cast<int>(times) * (passes_on ? count_readers(i) : 1);
    }
    return count;
  }

  /// The map of the node's output, which the step made next will write.
  Map new_map(const SampleLayout& layout, bool wants_diff) {
    TrackedMap tracked{.map = planning_.add_map(layout, wants_diff), .producer = next_step()};
    tracked.unread = count_readers(static_cast<int>(node_));
    tracked.shared = tracked.unread > 1;
    map_of_[node_] = static_cast<int>(maps_.size());
    maps_.push_back(tracked);
    return maps_.back().map;
  }

  /// The step made next reads the map.
  Source read(TrackedMap& tracked) {
    --tracked.unread;
    const bool adds = tracked.unread > 0;
    if (adds) tracked.last_touch = next_step();
    return {tracked.map, adds};
  }

  /// The only node that reads this one, if it is the next and of type L.
  template <class L>
  bool only_next_is() const {
    return node_ + 1 < nodes_.size() && std::holds_alternative<L>(nodes_[node_ + 1].layer) &&
           nodes_[node_ + 1].src == std::vector<int>{static_cast<int>(node_)} &&
           graph_.readers(static_cast<int>(node_)) == 1;
  }

  bool small_max_pool_is_next() const {
    return only_next_is<model::MaxPool>() &&
           std::get<model::MaxPool>(nodes_[node_ + 1].layer).size <= MaxPoolShape::kLargestSize;
  }

  /// Steps that work channel by channel need the map's own shape.
  void check_not_flattened(std::size_t i = 0) const {
    if (!flat_[node().src[i]]) return;
    fail(ExitCode::usage, "layer " + node().name + " reads a flattened map (the cpu backend lets " +
                              "dense layers, ReLU and dropout do that); use --backend reference");
  }

  void make_step() {
    const Shape read = graph_.src_shape(static_cast<int>(node_));
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
                   [&](const model::Relu&) { in_place<ReluStep>(); },
                   [&](const model::Dropout&) { in_place<DropoutStep>(); },
                   [&](const model::Flatten&) { flatten(); },
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
    TrackedMap& from = maps_[map_of_[first.src.front()]];
    ConvolutionBlock block{
        .convolution = &node(),
        .src_shape = from.map.layout.shape,
        .rows = rows,
        .columns = columns,
        .macs = model::macs(node().layer, graph_.src_shape(static_cast<int>(node_)))};
    if (only_next_is<model::Relu>()) {
      ++node_;
      block.relu = true;
    } else if (small_max_pool_is_next()) {
      ++node_;
      block.pool = &node();
      if (only_next_is<model::Relu>()) {
        ++node_;
        block.pooled_relu = true;
      }
    }
    if (from.producer == 0 && !from.shared && from.last_touch < 0) {
      block.picture = &std::get<model::Input>(nodes_[0].layer);
      input_step_->leave_to_reader();
    }
    const Source src = read(from);
    const bool wants_diff = src.map.wants_diff || !block.convolution->frozen;
    const Map dst = new_map({node().dst, block_}, wants_diff);
    maps_.back().diff_changes = block.relu;
    maps_.back().zeros_are_dead = block.relu || block.pooled_relu;
    steps_.push_back(
        std::make_unique<ConvolutionStep>(planning_, next_step(), block, src, dst, parameter_));
    parameter_ += block.convolution->parameters.size();
  }

  /// A convolution behind the zeros can see to them itself.
  void zero_pad(const model::ZeroPad& pad) {
    check_not_flattened();
    if (only_next_is<model::Convolution>()) {
      const auto& next = std::get<model::Convolution>(nodes_[node_ + 1].layer);
      const int most = std::max({pad.top, pad.bottom, pad.left, pad.right});
      if (next.padding == model::Padding::valid && most < next.kernel) {
        const model::Graph::Node& first = node();
        ++node_;
        return convolution(first, {pad.top, pad.bottom}, {pad.left, pad.right});
      }
    }
    const Source src = read(input());
    const Map dst = new_map({node().dst, src.map.layout.block}, src.map.wants_diff);
    steps_.push_back(std::make_unique<PadStep>(planning_, next_step(), node(), src, dst));
  }

  void batch_norm() {
    check_not_flattened();
    const model::Graph::Node& own = node();
    TrackedMap& from = input();
    const bool relu = only_next_is<model::Relu>();
    if (relu) ++node_;
    const Source src = read(from);
    const Map dst = new_map(src.map.layout, src.map.wants_diff || !own.frozen);
    maps_.back().zeros_are_dead = relu;
    steps_.push_back(
        std::make_unique<BatchNormStep>(planning_, next_step(), own, relu, src, dst, parameter_));
    parameter_ += own.parameters.size();
  }

  void dense(const model::Dense& layer) {
    const bool zeros_are_dead = input().zeros_are_dead;
    const Source src = read(input());
    const Map dst = new_map({{1, 1, layer.units}, 1}, src.map.wants_diff || !node().frozen);
    if (layer.sharded) {
      steps_.push_back(std::make_unique<ShardedDenseStep>(planning_, next_step(), node(), src, dst,
                                                          parameter_, zeros_are_dead));
    } else {
      steps_.push_back(std::make_unique<DenseStep>(planning_, next_step(), node(), src, dst,
                                                   parameter_, zeros_are_dead));
    }
    parameter_ += node().parameters.size();
  }

  void pool() {
    check_not_flattened();
    // Of a ReLU's outputs the largest is zero only where all are.
    const bool zeros_are_dead =
        std::holds_alternative<model::MaxPool>(node().layer) && input().zeros_are_dead;
    const Source src = read(input());
    const Map dst = new_map({node().dst, src.map.layout.block}, src.map.wants_diff);
    maps_.back().zeros_are_dead = zeros_are_dead;
    steps_.push_back(std::make_unique<PoolStep>(planning_, next_step(), node(), src, dst));
  }

  void add() {
    std::vector<int> inputs;
    std::vector<AddStep::Part> parts;
    bool wants_diff = false;
    for (std::size_t i = 0; i < node().src.size(); ++i) {
      check_not_flattened(i);
      inputs.push_back(map_of_[node().src[i]]);
      parts.push_back({read(input(i))});
      wants_diff |= parts.back().src.map.wants_diff;
      check_same_memory(parts.front().src.map.layout, parts.back().src.map.layout);
    }
    const Map dst = new_map(parts.front().src.map.layout, wants_diff);
    share_gradient(inputs, parts);
    steps_.push_back(
        std::make_unique<AddStep>(planning_, next_step(), node().name, std::move(parts), dst));
  }

  void check_same_memory(const SampleLayout& a, const SampleLayout& b) const {
    const bool vectors = a.shape.height == 1 && a.shape.width == 1 && !a.padded() && !b.padded();
    if (a.block == b.block || vectors) return;
    fail(ExitCode::usage, "layer " + node().name +
                              " adds maps that lie differently in memory (one " +
                              "is the picture, or a dense layer's); use --backend reference");
  }

  /// The gradient of a sum is that of every part, so they can share one piece of memory: no copy is
  /// made, and along the shortcuts of a residual network it is one for a whole stack. One part (the
  /// keeper) may have other readers, which add to the shared gradient, or be changed in place; then
  /// every other part must have been read by its own producer before that, on the way back.
  void share_gradient(const std::vector<int>& inputs, std::vector<AddStep::Part>& parts) {
    const auto changes = [&](std::size_t i) {
      return maps_[inputs[i]].shared || maps_[inputs[i]].diff_changes;
    };
    const auto may = [&](std::size_t i) {
      return parts[i].src.map.wants_diff && !parts[i].src.adds &&
             std::ranges::count(inputs, inputs[i]) == 1;
    };
    std::size_t keeper = 0;
    while (keeper < parts.size() && !(may(keeper) && changes(keeper))) ++keeper;
    const int touched = keeper < parts.size() ? maps_[inputs[keeper]].last_touch : -1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool quiet = !changes(i) && maps_[inputs[i]].producer > touched;
      parts[i].shares_diff = may(i) && (i == keeper || quiet);
      if (!parts[i].shares_diff) continue;
      planning_.memory.merge(maps_.back().map.diff, parts[i].src.map.diff);
      maps_.back().diff_changes |= changes(i);
      maps_.back().last_touch = std::max(maps_.back().last_touch, maps_[inputs[i]].last_touch);
    }
  }

  /// Only the map's single reader may change it; where there are others it changes a copy.
  template <class S>
  void in_place() {
    flat_[node_] = flat_[node().src.front()];
    if (input().shared) {
      const Source src = read(input());
      const Map copy = new_map(src.map.layout, src.map.wants_diff);
      steps_.push_back(std::make_unique<AddStep>(planning_, next_step(), node().name + " (copy)",
                                                 std::vector{AddStep::Part{src}}, copy));
    } else {
      map_of_[node_] = map_of_[node().src.front()];
    }
    TrackedMap& tracked = maps_[map_of_[node_]];
    tracked.unread = count_readers(static_cast<int>(node_));
    tracked.shared = tracked.unread > 1;
    tracked.diff_changes = true;
    tracked.zeros_are_dead |= std::is_same_v<S, ReluStep>;  // dropout's zeros are, too
    tracked.last_touch = next_step();
    steps_.push_back(std::make_unique<S>(planning_, next_step(), node(), tracked.map));
  }

  void flatten() {
    map_of_[node_] = map_of_[node().src.front()];
    const Shape read = graph_.src_shape(static_cast<int>(node_));
    flat_[node_] = flat_[node().src.front()] || read.height > 1 || read.width > 1;
  }

  void loss() {
    steps_.push_back(std::make_unique<LossStep>(planning_, next_step(), node(), input().map));
  }

  const model::Graph& graph_;
  std::span<const model::Graph::Node> nodes_;
  const Planning& planning_;
  int block_;
  std::vector<int> map_of_;  ///< by node: index of a tracked map
  std::vector<bool> flat_;   ///< by node: a vector by its shape, still blocked in memory
  std::vector<TrackedMap> maps_;
  std::size_t node_ = 0, parameter_ = 0;
  InputStep* input_step_ = nullptr;
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace

std::vector<std::unique_ptr<Step>> make_steps(const model::Graph& graph, const Planning& planning) {
  return StepMaker(graph, planning).make();
}

}  // namespace cputrain::cpu
