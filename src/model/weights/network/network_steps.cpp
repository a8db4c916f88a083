#include "model/weights/network/network_steps.h"

#include <variant>

#include "core/overloaded.h"

namespace cputrain::model {
namespace {

Sides square(int side) { return {side, side}; }

template <class Pool>
NetworkStep pool(StepKind kind, const Pool& layer) {
  return {.kind = kind,
          .size = square(layer.size),
          .stride = square(layer.stride),
          .padding = layer.padding};
}

NetworkStep activation(const char* word) { return {.kind = StepKind::activation, .word = word}; }

NetworkStep step_of(const Layer& layer) {
  const auto plain = [](StepKind kind) { return NetworkStep{.kind = kind}; };
  return std::visit(Overloaded{
                        [&](const Input&) { return plain(StepKind::input); },
                        [&](const Convolution& convolution) {
                          return NetworkStep{.kind = StepKind::weights,
                                             .size = square(convolution.kernel),
                                             .stride = square(convolution.stride),
                                             .padding = convolution.padding,
                                             .groups = convolution.groups};
                        },
                        [&](const ZeroPad& pad) {
                          return NetworkStep{.kind = StepKind::zero_pad,
                                             .zeros = {pad.top, pad.bottom, pad.left, pad.right}};
                        },
                        [&](const MaxPool& one) { return pool(StepKind::max_pool, one); },
                        [&](const AveragePool& one) { return pool(StepKind::average_pool, one); },
                        [&](const GlobalAveragePool&) {
                          return NetworkStep{.kind = StepKind::average_pool, .global = true};
                        },
                        [&](const Dense&) { return plain(StepKind::weights); },
                        [&](const BatchNorm& norm) {
                          return NetworkStep{.kind = StepKind::weights, .epsilon = norm.epsilon};
                        },
                        [&](const Add&) { return plain(StepKind::add); },
                        [&](const Concat&) { return plain(StepKind::concat); },
                        [&](const Relu&) { return activation("relu"); },
                        [&](const Relu6&) { return activation("relu6"); },
                        [&](const Silu&) { return activation("silu"); },
                        [&](const Dropout&) { return plain(StepKind::same); },
                        [&](const Flatten&) { return plain(StepKind::same); },
                        [&](const SigmoidCrossEntropy&) { return activation("sigmoid"); },
                        [&](const SoftmaxCrossEntropy&) { return activation("softmax"); },
                    },
                    layer);
}

}  // namespace

NetworkSteps network_steps(const Graph& graph) {
  NetworkSteps steps;
  for (const Graph::Node& node : graph.nodes()) {
    NetworkStep step = step_of(node.layer);
    step.name = node.name;
    step.src = node.src;
    step.dst = node.dst;
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace cputrain::model
