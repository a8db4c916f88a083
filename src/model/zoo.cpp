#include "model/zoo.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "model/rewrite.h"

namespace cputrain {
namespace {

/// The Dogs-vs-Cats CNN of the paper (its Table I): 13,217,985 parameters at 256x256x3 with two
/// classes. Padding, initial values and the order of classes are not stated there: Keras' defaults
/// and cat 0, dog 1.
Graph dogcat(Shape image, int classes) {
  Graph graph(image);
  for (const int filters : {32, 64, 128, 128}) {
    graph.add(Convolution{.filters = filters, .kernel = 3});
    graph.add(Relu{});
    graph.add(MaxPool{.size = 2, .stride = 2});
  }
  graph.add(Flatten{});
  graph.add(Dense{512});
  graph.add(Relu{});
  graph.add(Dropout{0.25f});
  graph.add(Dense{256});
  graph.add(Relu{});
  graph.add(Dropout{0.5f});
  add_classifier(graph, classes);
  return graph;
}

}  // namespace

void add_classifier(Graph& graph, int classes) {
  if (classes == 2) {
    graph.add(Dense{1});
    graph.add(SigmoidCrossEntropy{});
  } else {
    graph.add(Dense{classes});
    graph.add(SoftmaxCrossEntropy{});
  }
}

const std::vector<ModelEntry>& model_zoo() {
  static const std::vector<ModelEntry> zoo{
      {.name = "dogcat",
       .aliases = {"paper"},
       .description = "Dogs-vs-Cats CNN: 4 convolutions with max pooling, 3 dense layers",
       .recipe = {.image_size = 256,
                  .batch = 128,
                  .epochs = 10,
                  .rule = RmsProp{},
                  .learning_rate = 0.001,
                  .source = "paper on synchronous SGD with large batches, Table I"},
       .build = dogcat},
  };
  return zoo;
}

const ModelEntry& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelEntry& entry : model_zoo()) {
    const auto& aliases = entry.aliases;
    if (entry.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return entry;
    }
    names.push_back(entry.name);
    names.insert(names.end(), aliases.begin(), aliases.end());
  }
  fail(ExitCode::usage, "--model " + std::string(name) + " is not known; models are " +
                            join(names, ", ") + did_you_mean(name, names));
}

}  // namespace cputrain
