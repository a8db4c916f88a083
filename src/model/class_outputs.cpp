#include "model/class_outputs.h"

#include "core/overloaded.h"

namespace cputrain::model {
namespace {

/// What a layer does to channels that come from behind it.
enum class Passage {
  makes,   ///< its own kernel makes them
  scales,  ///< each gets a factor and an addend that are parameters
  linear,  ///< each stays itself, and a change of sign passes
  bends,   ///< each stays itself, but a change of sign does not pass
  mixes,   ///< they are not those of what it reads
};

Passage passage(const Graph& graph, int index) {
  return std::visit(
      Overloaded{
          [](const Convolution& l) { return l.groups == 1 ? Passage::makes : Passage::mixes; },
          [](const Dense&) { return Passage::makes; },
          [](const BatchNorm&) { return Passage::scales; },
          [](const ZeroPad&) { return Passage::linear; },
          [](const AveragePool&) { return Passage::linear; },
          [](const GlobalAveragePool&) { return Passage::linear; },
          [](const Dropout&) { return Passage::linear; },
          [](const SigmoidCrossEntropy&) { return Passage::linear; },
          [](const SoftmaxCrossEntropy&) { return Passage::linear; },
          [](const Relu&) { return Passage::bends; },
          [](const Relu6&) { return Passage::bends; },
          [](const Silu&) { return Passage::bends; },
          [](const MaxPool&) { return Passage::bends; },
          [&](const Flatten&) {
            const Shape src = graph.src_shape(index);
            return src.height * src.width == 1 ? Passage::linear : Passage::mixes;
          },
          [](const Add&) { return Passage::mixes; },
          [](const Concat&) { return Passage::mixes; },
          [](const Input&) { return Passage::mixes; },
      },
      graph.nodes()[static_cast<std::size_t>(index)].layer);
}

}  // namespace

ClassOutputs class_outputs(const Graph& graph) {
  ClassOutputs outputs{.count = graph.back().dst.channels, .arrays = {}, .negated = {}};
  bool sign_passes = outputs.count == 1;
  int index = static_cast<int>(graph.nodes().size()) - 1;
  while (true) {
    const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(index)];
    const Passage through = passage(graph, index);
    if (through == Passage::mixes) return {};
    for (const ParameterSpec& spec : node.parameters) outputs.arrays.push_back(spec.name);
    const bool affine = through == Passage::makes || through == Passage::scales;
    if (affine && sign_passes && outputs.negated.empty()) {
      // Kernel and bias, or gamma and beta: the first two of either.
      for (std::size_t i = 0; i < node.parameters.size() && i < 2; ++i) {
        outputs.negated.push_back(node.parameters[i].name);
      }
    }
    if (through == Passage::makes) return outputs;
    if (through == Passage::bends) sign_passes = false;
    index = node.src.front();
    if (graph.readers(index) != 1) return {};
  }
}

}  // namespace cputrain::model
