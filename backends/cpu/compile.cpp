#include "backends/cpu/compile.h"

#include "backends/cpu/convolution_step.h"
#include "backends/cpu/dense_step.h"
#include "backends/cpu/elementwise_steps.h"
#include "backends/cpu/input_step.h"
#include "backends/cpu/loss_step.h"
#include "backends/cpu/pool_step.h"
#include "core/error.h"

namespace cputrain {
namespace {

/// Walks the nodes and keeps the map that the next one reads. Flatten needs no step: a dense layer
/// knows the layout of what it reads.
class StepMaker {
 public:
  StepMaker(const Graph& graph, const Planning& planning)
      : nodes_(graph.nodes()), planning_(planning), block_(preferred_block()) {}

  std::vector<std::unique_ptr<Step>> make() {
    map_ = planning_.add_map({nodes_[0].dst, 1}, false);
    steps_.push_back(std::make_unique<InputStep>(planning_, nodes_[0], map_));
    for (node_ = 1; node_ < nodes_.size(); ++node_) {
      check_chain();
      make_step();
    }
    return std::move(steps_);
  }

 private:
  const Graph::Node& node() const { return nodes_[node_]; }
  int next_step() const { return static_cast<int>(steps_.size()); }

  void check_chain() const {
    if (node().src == std::vector<int>{static_cast<int>(node_) - 1}) return;
    fail(ExitCode::usage, "layer " + node().name +
                              " does not read the layer before it (the cpu "
                              "backend runs chains of layers); use --backend reference");
  }

  template <class L>
  bool next_is() const {
    return node_ + 1 < nodes_.size() && std::holds_alternative<L>(nodes_[node_ + 1].layer);
  }

  bool small_max_pool_is_next() const {
    return next_is<MaxPool>() &&
           std::get<MaxPool>(nodes_[node_ + 1].layer).size <= MaxPoolShape::kLargestSize;
  }

  void make_step() {
    std::visit(Overloaded{
                   [&](const Convolution&) { convolution(); },
                   [&](const Dense& l) { dense(l); },
                   [&](const MaxPool&) { pool(); },
                   [&](const AveragePool&) { pool(); },
                   [&](const GlobalAveragePool&) { pool(); },
                   [&](const Relu&) { in_place<ReluStep>(); },
                   [&](const Dropout&) { in_place<DropoutStep>(); },
                   [&](const Flatten&) {},
                   [&](const SigmoidCrossEntropy&) { in_place<LossStep>(); },
                   [&](const SoftmaxCrossEntropy&) { in_place<LossStep>(); },
                   [&](const Input&) {
                     fail(ExitCode::usage, "a second input (only the first node may be one)");
                   },
               },
               node().layer);
  }

  void convolution() {
    ConvolutionBlock block{.convolution = &node(), .src_shape = map_.layout.shape};
    if (next_is<Relu>()) {
      ++node_;
      block.relu = true;
    } else if (small_max_pool_is_next()) {
      ++node_;
      block.pool = &node();
      if (next_is<Relu>()) {
        ++node_;
        block.pooled_relu = true;
      }
    }
    const Map src = map_;
    map_ = planning_.add_map({node().dst, block_}, true);
    steps_.push_back(
        std::make_unique<ConvolutionStep>(planning_, next_step(), block, src, map_, parameter_));
    parameter_ += block.convolution->parameters.size();
  }

  void dense(const Dense& layer) {
    const Map src = map_;
    map_ = planning_.add_map({{1, 1, layer.units}, 1}, true);
    steps_.push_back(
        std::make_unique<DenseStep>(planning_, next_step(), node(), src, map_, parameter_));
    parameter_ += node().parameters.size();
  }

  void pool() {
    const Map src = map_;
    map_ = planning_.add_map({node().dst, src.layout.block}, src.wants_diff);
    steps_.push_back(std::make_unique<PoolStep>(planning_, next_step(), node(), src, map_));
  }

  template <class S>
  void in_place() {
    steps_.push_back(std::make_unique<S>(planning_, next_step(), node(), map_));
  }

  std::span<const Graph::Node> nodes_;
  const Planning& planning_;
  int block_;
  Map map_;
  std::size_t node_ = 0, parameter_ = 0;
  std::vector<std::unique_ptr<Step>> steps_;
};

}  // namespace

std::vector<std::unique_ptr<Step>> make_steps(const Graph& graph, const Planning& planning) {
  return StepMaker(graph, planning).make();
}

}  // namespace cputrain
