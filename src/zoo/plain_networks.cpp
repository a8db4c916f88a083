// Networks that are chains of layers.

#include "zoo/networks.h"

namespace cputrain {
namespace {

void add_convolution(Graph& graph, const Convolution& convolution) {
  graph.add(convolution);
  graph.add(Relu{});
}

void add_dense(Graph& graph, const Dense& dense) {
  graph.add(dense);
  graph.add(Relu{});
}

}  // namespace

Graph dogcat(Shape image, int classes) {
  Graph graph(image);
  for (const int filters : {32, 64, 128, 128}) {
    add_convolution(graph, {.filters = filters, .kernel = 3});
    graph.add(MaxPool{.size = 2, .stride = 2});
  }
  graph.add(Flatten{});
  add_dense(graph, {512});
  graph.add(Dropout{0.25f});
  add_dense(graph, {256});
  graph.add(Dropout{0.5f});
  if (classes == 2) {
    graph.add(Dense{1});
    graph.add(SigmoidCrossEntropy{});
  } else {
    graph.add(Dense{classes});
    graph.add(SoftmaxCrossEntropy{});
  }
  return graph;
}

Graph nature7(Shape image, int classes) {
  Graph graph(image);
  for (const int filters : {16, 32, 32, 64, 128}) {
    add_convolution(graph, {.filters = filters, .kernel = 3});
    graph.add(MaxPool{.size = 2, .stride = 2});
  }
  graph.add(Flatten{});
  add_dense(graph, {128});
  graph.add(Dropout{0.3f});
  graph.add(Dense{classes});
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

Graph chips(Shape image, int classes) {
  constexpr float kL2 = 0.0015f;
  Graph graph(image);
  bool first = true;
  for (const int filters : {16, 32, 32, 64, 64}) {
    add_convolution(graph, {.filters = filters, .kernel = 3, .padding = Padding::same, .l2 = kL2});
    if (!first) graph.add(MaxPool{.size = 2, .stride = 2});
    first = false;
  }
  graph.add(Dropout{0.5f});
  graph.add(Flatten{});
  add_dense(graph, {.units = 128, .l2 = kL2});
  graph.add(Dense{classes});
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

Graph vgg16(Shape image, int classes) {
  struct Block {
    int filters, convolutions;
  };
  Graph graph(image);
  int number = 1;
  for (const auto& [filters, convolutions] :
       {Block{64, 2}, Block{128, 2}, Block{256, 3}, Block{512, 3}, Block{512, 3}}) {
    const std::string name = "block" + std::to_string(number++);
    for (int i = 1; i <= convolutions; ++i) {
      graph.add(Convolution{.filters = filters, .kernel = 3, .padding = Padding::same},
                name + "_conv" + std::to_string(i));
      graph.add(Relu{});
    }
    graph.add(MaxPool{.size = 2, .stride = 2}, name + "_pool");
  }
  graph.add(Flatten{});
  for (const char* name : {"fc1", "fc2"}) {
    graph.add(Dense{4096}, name);
    graph.add(Relu{});
  }
  graph.add(Dense{classes}, "predictions");
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

}  // namespace cputrain
