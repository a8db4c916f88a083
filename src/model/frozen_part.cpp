#include "model/frozen_part.h"

#include <algorithm>

namespace cputrain::model {
namespace {

/// Whether it gives the same numbers for the same input in every pass.
bool is_constant(const Graph::Node& node) {
  if (const auto* dropout = std::get_if<Dropout>(&node.layer)) return dropout->rate == 0;
  return node.parameters.empty() || node.frozen;
}

}  // namespace

std::vector<int> frozen_cuts(const Graph& graph) {
  const auto nodes = graph.nodes();
  // By node, the last one that reads it.
  std::vector<int> last_reader(nodes.size(), 0);
  for (int i = 1; i < static_cast<int>(nodes.size()); ++i) {
    for (const int src : nodes[static_cast<std::size_t>(i)].src) {
      last_reader[static_cast<std::size_t>(src)] = i;
    }
  }
  std::vector<int> cuts;
  int needed_until = last_reader[0];  // by the nodes before this one
  for (int i = 1; i + 1 < static_cast<int>(nodes.size()); ++i) {
    if (!is_constant(nodes[static_cast<std::size_t>(i)])) break;
    if (needed_until <= i) cuts.push_back(i);
    needed_until = std::max(needed_until, last_reader[static_cast<std::size_t>(i)]);
  }
  return cuts;
}

double share_of_work(const Graph& graph, int node) {
  double before = 0, all = 0;
  for (int i = 1; i < static_cast<int>(graph.nodes().size()); ++i) {
    const double work = macs(graph.nodes()[static_cast<std::size_t>(i)].layer, graph.src_shape(i));
    all += work;
    if (i <= node) before += work;
  }
  return all > 0 ? before / all : 0;
}

}  // namespace cputrain::model
