// Networks that are chains of layers.

#include "zoo/networks.h"

namespace cputrain::zoo {
namespace {

void add_rectified(model::Graph& graph, const model::Layer& layer, const std::string& name = {}) {
  graph.add(layer, name);
  graph.add(model::Relu{});
}

}  // namespace

model::Graph dogcat(Shape image, int classes) {
  model::Graph graph(image);
  for (const int filters : {32, 64, 128, 128}) {
    add_rectified(graph, model::Convolution{.filters = filters, .kernel = 3});
    graph.add(model::MaxPool{.size = 2, .stride = 2});
  }
  graph.add(model::Flatten{});
  add_rectified(graph, model::Dense{512});
  graph.add(model::Dropout{0.25f});
  add_rectified(graph, model::Dense{256});
  graph.add(model::Dropout{0.5f});
  if (classes == 2) {
    graph.add(model::Dense{1});
    graph.add(model::SigmoidCrossEntropy{});
  } else {
    graph.add(model::Dense{classes});
    graph.add(model::SoftmaxCrossEntropy{});
  }
  return graph;
}

model::Graph nature7(Shape image, int classes) {
  model::Graph graph(image);
  for (const int filters : {16, 32, 32, 64, 128}) {
    add_rectified(graph, model::Convolution{.filters = filters, .kernel = 3});
    graph.add(model::MaxPool{.size = 2, .stride = 2});
  }
  graph.add(model::Flatten{});
  add_rectified(graph, model::Dense{128});
  graph.add(model::Dropout{0.3f});
  graph.add(model::Dense{classes});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

model::Graph chips(Shape image, int classes) {
  constexpr float kL2 = 0.0015f;
  model::Graph graph(image);
  bool first = true;
  for (const int filters : {16, 32, 32, 64, 64}) {
    add_rectified(graph,
                  model::Convolution{
                      .filters = filters, .kernel = 3, .padding = model::Padding::same, .l2 = kL2});
    if (!first) graph.add(model::MaxPool{.size = 2, .stride = 2});
    first = false;
  }
  graph.add(model::Dropout{0.5f});
  graph.add(model::Flatten{});
  add_rectified(graph, model::Dense{.units = 128, .l2 = kL2});
  graph.add(model::Dense{classes});
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

model::Graph vgg16(Shape image, int classes) {
  model::Graph graph(image);
  int number = 1;
  for (const int filters : {64, 128, 256, 512, 512}) {
    const int convolutions = number <= 2 ? 2 : 3;
    const std::string name = "block" + std::to_string(number++);
    for (int i = 1; i <= convolutions; ++i) {
      add_rectified(
          graph,
          model::Convolution{.filters = filters, .kernel = 3, .padding = model::Padding::same},
          name + "_conv" + std::to_string(i));
    }
    graph.add(model::MaxPool{.size = 2, .stride = 2}, name + "_pool");
  }
  graph.add(model::Flatten{});
  for (const char* name : {"fc1", "fc2"}) add_rectified(graph, model::Dense{4096}, name);
  graph.add(model::Dense{classes}, "predictions");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

}  // namespace cputrain::zoo
