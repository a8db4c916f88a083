#include "backends/cuda/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/ops/convolution_op.h"
#include "backends/cuda/ops/elementwise_ops.h"
#include "backends/cuda/ops/input_op.h"
#include "backends/cuda/ops/loss_op.h"
#include "backends/cuda/ops/pool_op.h"
#include "compute/executor/graph_walk.h"
#include "core/error.h"

namespace cputrain::cuda {
namespace {

/// Makes the operators as it walks the nodes.
class OpMaker {
 public:
  OpMaker(const model::Graph& graph, const Planning& planning)
      : planning_(planning), walk_(graph) {}

  compute::OpList make() {
    const Activation pixels = new_activation(walk_.node().dst, false);
    list_.ops.push_back(std::make_unique<InputOp>(planning_, walk_.node(), pixels));
    for (walk_.advance(); !walk_.ended(); walk_.advance()) make_op();
    return std::move(list_);
  }

 private:
  const model::Graph::Node& node() const { return walk_.node(); }
  int next_op() const { return static_cast<int>(list_.ops.size()); }
  Source read_input() { return walk_.read(walk_.input(), next_op()); }

  /// Of the node's output, which the operator made next will write.
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
    const double numbers = static_cast<double>(shape.height) * shape.width *
                           padded_channels(shape.channels) * planning_.largest();
    const double bytes = numbers * static_cast<double>(stored_bytes(planning_.numbers));
    if (bytes / 16 <= static_cast<double>(kMostPositions)) return;
    fail(ExitCode::usage,
         fmt::format("layer {}: {} images of {} x {} x {} at once (kernels of --backend cuda count "
                     "16 bytes of a map in 31 bits); use a smaller --micro-batch",
                     node().name, planning_.largest(), shape.height, shape.width, shape.channels));
  }

  void make_op() {
    std::visit(Overloaded{
                   [&](const model::Convolution&) {
                     check_not_flattened();
                     convolution();
                   },
                   [&](const model::Dense& l) { dense(l); },
                   [&](const model::MaxPool&) { pool(); },
                   [&](const model::AveragePool&) { pool(); },
                   [&](const model::GlobalAveragePool&) { pool(); },
                   [&](const model::Relu&) { in_place<ReluOp>(); },
                   [&](const model::Dropout&) { in_place<DropoutOp>(); },
                   [&](const model::Flatten&) { walk_.flatten(); },
                   [&](const model::SigmoidCrossEntropy&) { loss(); },
                   [&](const model::SoftmaxCrossEntropy&) { loss(); },
                   [&](const auto&) { refuse(); },
               },
               node().layer);
  }

  [[noreturn]] void refuse() const {
    fail(ExitCode::usage,
         fmt::format("layer {}: {} is not among the layers that --backend cuda has (convolution, "
                     "pools, dense, ReLU, dropout, flatten and the losses); use --backend cpu",
                     node().name, model::type_name(node().layer)));
  }

  /// Most operators need the map's own shape.
  void check_not_flattened() const {
    if (!walk_.reads_flattened()) return;
    fail(ExitCode::usage,
         fmt::format("layer {} reads a flattened map (on --backend cuda dense layers, ReLU and "
                     "dropout may); use --backend reference",
                     node().name));
  }

  void convolution() {
    const Source src = read_input();
    const Activation dst = new_activation(node().dst, src.wants_diff || !node().frozen);
    list_.ops.push_back(
        std::make_unique<ConvolutionOp>(planning_, next_op(), node(), src, dst, parameter_));
    parameter_ += node().parameters.size();
  }

  void dense(const model::Dense& layer) {
    if (layer.sharded) {
      fail(ExitCode::usage,
           fmt::format("layer {}: --backend cuda shards no dense layer (each rank has a device "
                       "of its own); leave --shard-dense out",
                       node().name));
    }
    convolution();
  }

  void pool() {
    check_not_flattened();
    const model::Graph::Node& own = node();
    const Source src = read_input();
    const bool relu = std::holds_alternative<model::MaxPool>(own.layer) &&
                      walk_.only_next_is<model::Relu>() != nullptr;
    if (relu) walk_.advance();
    const Activation dst = new_activation(own.dst, src.wants_diff);
    list_.ops.push_back(std::make_unique<PoolOp>(planning_, next_op(), own, relu, src, dst));
  }

  template <class O>
  void in_place() {
    if (walk_.input().shared) refuse_branch();
    const Activation activation = walk_.change_in_place(next_op());
    list_.ops.push_back(std::make_unique<O>(planning_, next_op(), node(), activation));
  }

  [[noreturn]] void refuse_branch() const {
    fail(ExitCode::usage,
         fmt::format("layer {} reads a map that other layers read as well (on --backend cuda only "
                     "the single reader of a map may change it); use --backend cpu",
                     node().name));
  }

  void loss() {
    check_not_flattened();
    auto op = std::make_unique<LossOp>(planning_, next_op(), node(), walk_.input());
    list_.loss = op.get();
    list_.ops.push_back(std::move(op));
  }

  const Planning& planning_;
  compute::GraphWalk walk_;
  std::size_t parameter_ = 0;
  compute::OpList list_;
};

}  // namespace

compute::OpList make_ops(const model::Graph& graph, const Planning& planning) {
  return OpMaker(graph, planning).make();
}

}  // namespace cputrain::cuda
