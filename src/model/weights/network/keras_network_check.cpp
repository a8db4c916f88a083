#include "model/weights/network/keras_network_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace cputrain::model {
namespace {

/// "a; b; 3 more".
std::string text_of_all(std::vector<std::string> differences) {
  constexpr std::size_t kMost = 6;
  const std::size_t all = differences.size();
  differences.resize(std::min(all, kMost));
  return join(differences, "; ") + (all > kMost ? fmt::format("; {} more", all - kMost) : "");
}

std::string caveat_of_outputs(const KerasDifferences& found) {
  if (found.outputs.empty()) return "";
  return fmt::format(
      "its network ends in {}, and this one does not (the class that it is most sure "
      "of is the same, but probabilities are others)",
      found.outputs);
}

std::string caveat_of_unknown(const KerasDifferences& found) {
  if (found.not_compared.empty()) return "";
  return fmt::format(
      "what {} does was not compared (its class or function is none of Keras' own, or the file "
      "says too little)",
      first_few(found.not_compared));
}

/// Whether at most one layer is missing, as the last one is that a training begins anew.
bool has_all(const Graph& graph, const KerasPairs& pairs) {
  const auto layers = std::ranges::count_if(
      graph.nodes(), [](const Graph::Node& node) { return !node.parameters.empty(); });
  return std::ssize(pairs) + 1 >= layers;
}

}  // namespace

std::vector<std::string> check_network(const KerasFile& opened, const Graph& graph,
                                       const KerasPairs& pairs, Otherwise otherwise) {
  const KerasDifferences found = keras_differences(opened.texts.config, graph, pairs);
  const std::string outputs = caveat_of_outputs(found);
  const std::string unknown = caveat_of_unknown(found);
  if (found.layers.empty()) return {outputs, unknown};
  const std::string text =
      "its network computes something else than this one: " + text_of_all(found.layers);
  if (otherwise == Otherwise::warn || !has_all(graph, pairs)) return {text, outputs, unknown};
  fail(ExitCode::data,
       fmt::format("weight file {}: {} (the arrays fit, and the answers would be others); use a "
                   "model file that does the same (--model; export --model-file writes one to "
                   "change), or --partial, with which a training only warns",
                   printable(opened.path.string()), text));
}

}  // namespace cputrain::model
