#include "model/rewrite.h"

#include <algorithm>
#include <utility>

namespace cputrain::model {

namespace {

/// Whether node `index` is a ReLU that only a max pool reads, which is the next node.
bool relu_before_pool(const Graph& graph, int index) {
  const auto nodes = graph.nodes();
  if (index + 1 >= static_cast<int>(nodes.size())) return false;
  const auto& pool = nodes[index + 1];
  return facts_of(nodes[index].layer).behind_pools && std::holds_alternative<MaxPool>(pool.layer) &&
         pool.src == std::vector<int>{index} && graph.readers(index) == 1;
}

}  // namespace

Graph pool_before_relu(const Graph& graph) {
  Graph copy(graph.image(), graph.input());
  const auto nodes = graph.nodes();
  std::vector<int> moved(nodes.size());  // old index -> index of the same value in the new graph
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    std::vector<int> src;
    for (const int s : nodes[i].src) src.push_back(moved[s]);
    if (relu_before_pool(graph, i)) {
      const int pooled = copy.append(nodes[i + 1], std::move(src));
      moved[i + 1] = copy.append(nodes[i], {pooled});
      ++i;  // the pool is done; it alone reads the ReLU's full-size output
    } else {
      moved[i] = copy.append(nodes[i], std::move(src));
    }
  }
  return copy;
}

Graph without_relus(const Graph& graph) {
  Graph copy(graph.image(), graph.input());
  const auto nodes = graph.nodes();
  std::vector<int> moved(nodes.size());  // old index -> index of what stands for it
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    std::vector<int> src;
    for (const int s : nodes[i].src) src.push_back(moved[static_cast<std::size_t>(s)]);
    moved[i] = std::holds_alternative<Relu>(nodes[i].layer) ? src.front()
                                                            : copy.append(nodes[i], std::move(src));
  }
  return copy;
}

namespace {

/// A copy in which `change` may alter every node, but neither its inputs nor its shape.
template <class Change>
Graph changed(const Graph& graph, const Change& change) {
  Graph copy(graph.image(), graph.input());
  for (std::size_t i = 1; i < graph.nodes().size(); ++i) {
    Graph::Node node = graph.nodes()[i];
    change(node);
    copy.append(node, node.src);
  }
  return copy;
}

}  // namespace

Graph with_dropout(const Graph& graph, float rate) {
  return changed(graph, [&](Graph::Node& node) {
    if (auto* dropout = std::get_if<Dropout>(&node.layer)) dropout->rate = rate;
  });
}

Graph with_input(const Graph& graph, const Input& input) {
  Graph copy(graph.image(), input);
  for (std::size_t i = 1; i < graph.nodes().size(); ++i) {
    copy.append(graph.nodes()[i], graph.nodes()[i].src);
  }
  return copy;
}

Graph with_label_smoothing(const Graph& graph, float smoothing) {
  return changed(graph, [&](Graph::Node& node) {
    if (auto* loss = std::get_if<SigmoidCrossEntropy>(&node.layer)) loss->smoothing = smoothing;
    if (auto* loss = std::get_if<SoftmaxCrossEntropy>(&node.layer)) loss->smoothing = smoothing;
  });
}

Graph with_frozen(const Graph& graph, std::span<const std::string> layers) {
  return changed(graph, [&](Graph::Node& node) {
    node.frozen |= std::ranges::find(layers, node.name) != layers.end();
  });
}

Graph with_rate(const Graph& graph, std::span<const std::string> layers, double rate) {
  return changed(graph, [&](Graph::Node& node) {
    if (std::ranges::find(layers, node.name) != layers.end()) node.rate = rate;
  });
}

Graph with_sharded_dense(const Graph& graph, std::span<const std::string> layers) {
  return changed(graph, [&](Graph::Node& node) {
    auto* dense = std::get_if<Dense>(&node.layer);
    if (dense && std::ranges::find(layers, node.name) != layers.end()) dense->sharded = true;
  });
}

bool has_sharded_dense(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Graph::Node& node) {
    const auto* dense = std::get_if<Dense>(&node.layer);
    return dense && dense->sharded;
  });
}

}  // namespace cputrain::model
