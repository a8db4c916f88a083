#include "model/least_bytes.h"

#include <set>

#include "model/rewrite.h"

namespace cputrain::model {
namespace {

/// The map that lies in memory where node `index` is read.
int stored(const Graph& graph, int index) {
  const auto& node = graph.nodes()[static_cast<std::size_t>(index)];
  const bool passes_on =
      std::holds_alternative<ZeroPad>(node.layer) || std::holds_alternative<Flatten>(node.layer);
  return passes_on ? stored(graph, node.src.front()) : index;
}

/// The pool, where the next node is one and alone reads this convolution; else none.
const Graph::Node* pool_of(const Graph& graph, int index) {
  const auto nodes = graph.nodes();
  const auto next = static_cast<std::size_t>(index) + 1;
  const bool pooled = std::holds_alternative<Convolution>(nodes[next - 1].layer) &&
                      next < nodes.size() && std::holds_alternative<MaxPool>(nodes[next].layer) &&
                      nodes[next].src.front() == index && graph.readers(index) == 1;
  return pooled ? &nodes[next] : nullptr;
}

}  // namespace

std::map<std::string, LeastBytes> least_bytes(const Graph& given, std::size_t element_bytes) {
  const Graph graph = pool_before_relu(given);
  const auto nodes = graph.nodes();
  const auto element = static_cast<double>(element_bytes);
  std::map<std::string, LeastBytes> bytes;
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    const auto& node = nodes[static_cast<std::size_t>(i)];
    LeastBytes least;
    if (!pool_of(graph, i - 1)) {
      for (const int src : node.src) {
        const int from = stored(graph, src);
        const auto size = static_cast<double>(nodes[static_cast<std::size_t>(from)].dst.size());
        least.of_image += size * (from == 0 ? 1 : element);
      }
      const Graph::Node* pool = pool_of(graph, i);
      least.of_image += element * static_cast<double>((pool ? pool : &node)->dst.size());
    }
    for (const auto& parameter : node.parameters) {
      least.of_call += element * static_cast<double>(parameter.size());
    }
    bytes[node.name] = least;
  }
  return bytes;
}

double kept_numbers(const Graph& graph) {
  std::set<int> maps;
  for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
    const auto& node = graph.nodes()[static_cast<std::size_t>(i)];
    if (macs(node.layer, graph.src_shape(i)) > 0) maps.insert(stored(graph, node.src.front()));
  }
  maps.erase(0);
  double numbers = 0;
  for (const int map : maps) {
    numbers += static_cast<double>(graph.nodes()[static_cast<std::size_t>(map)].dst.size());
  }
  return numbers;
}

}  // namespace cputrain::model
