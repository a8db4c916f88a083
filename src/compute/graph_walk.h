#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "model/graph.h"

namespace cputrain::compute {

/// A map (an activation, and its gradient where it has one) and what the steps of a program made so
/// far do to it. `Map` is a backend's own.
template <class Map>
struct TrackedMap {
  Map map;
  int unread = 0;             ///< readers that have no step yet
  bool shared = false;        ///< has several readers
  bool diff_changes = false;  ///< its gradient is changed in place on the way back
  /// A ReLU made it, so where it is zero its gradient ends.
  bool zeros_are_dead = false;
  int producer = 0;     ///< step that writes it
  int last_touch = -1;  ///< last step that changes it in place, or reads it and adds to its
                        ///< gradient; of the maps that share the gradient, too
};

/// A map that a step reads. Where later steps of the schedule read it too, they have written its
/// gradient when this step's backward runs, so it adds to that.
template <class Map>
struct Source {
  Map map;
  bool adds = false;
};

/// How every backend that runs a graph as a list of steps walks it: node by node, one step for each
/// node or for a few of them, keeping for each node the map that holds its output. Flatten needs no
/// step: its output is the map that it reads, of which the walk remembers that it is a vector only
/// by its shape.
template <class Map>
class GraphWalk {
 public:
  /// Stands on the input, whose output has no map yet. The graph is borrowed.
  explicit GraphWalk(const model::Graph& graph)
      : graph_(graph), nodes_(graph.nodes()), map_of_(nodes_.size(), -1), flat_(nodes_.size()) {}

  const model::Graph::Node& node() const { return nodes_[node_]; }
  bool ended() const { return node_ == nodes_.size(); }
  void advance() { ++node_; }

  /// The extents of what the node reads first.
  Shape src_shape() const { return graph_.src_shape(static_cast<int>(node_)); }

  /// The map that input number `i` of the node lies in.
  TrackedMap<Map>& input(std::size_t i = 0) { return maps_[input_index(i)]; }
  /// The map that output `src` of an earlier node lies in.
  TrackedMap<Map>& output_of(int src) { return maps_[static_cast<std::size_t>(map_of_[src])]; }
  std::size_t input_index(std::size_t i) const {
    return static_cast<std::size_t>(map_of_[node().src[i]]);
  }
  TrackedMap<Map>& map(std::size_t index) { return maps_[index]; }
  /// The map that was made last.
  TrackedMap<Map>& newest() { return maps_.back(); }
  /// Whether input `i` is a vector by its shape that still lies in memory as the map it was.
  bool reads_flattened(std::size_t i = 0) const { return flat_[node().src[i]]; }

  /// The only node that reads this one, if it is the next and of type L; else null.
  template <class L>
  const L* only_next_is() const {
    if (node_ + 1 == nodes_.size()) return nullptr;
    const model::Graph::Node& next = nodes_[node_ + 1];
    const int self = static_cast<int>(node_);
    if (next.src != std::vector<int>{self} || graph_.readers(self) != 1) return nullptr;
    return std::get_if<L>(&next.layer);
  }

  /// The node's output lies in a map of its own, which step `producer` writes.
  void place(const Map& map, int producer) {
    TrackedMap<Map> tracked{.map = map, .producer = producer};
    map_of_[node_] = static_cast<int>(maps_.size());
    maps_.push_back(tracked);
    count_readers(maps_.back());
  }

  /// Step number `step` reads the map.
  Source<Map> read(TrackedMap<Map>& tracked, int step) {
    --tracked.unread;
    const bool adds = tracked.unread > 0;
    if (adds) tracked.last_touch = step;
    return {tracked.map, adds};
  }

  /// Step number `step` changes what the node reads in place, and its gradient; no other node may
  /// read that map, unless place() gave the node a copy of it.
  TrackedMap<Map>& change_in_place(int step) {
    flat_[node_] = flat_[node().src.front()];
    if (map_of_[node_] < 0) map_of_[node_] = map_of_[node().src.front()];
    TrackedMap<Map>& tracked = maps_[static_cast<std::size_t>(map_of_[node_])];
    count_readers(tracked);
    tracked.diff_changes = true;
    tracked.last_touch = step;
    return tracked;
  }

  /// The node flattens: its output is what it reads.
  void flatten() {
    const Shape read = src_shape();
    map_of_[node_] = map_of_[node().src.front()];
    flat_[node_] = flat_[node().src.front()] || read.height > 1 || read.width > 1;
  }

 private:
  /// Steps that will read the node's output.
  void count_readers(TrackedMap<Map>& tracked) const {
    tracked.unread = readers_of(static_cast<int>(node_));
    tracked.shared = tracked.unread > 1;
  }
  int readers_of(int index) const {
    int count = 0;
    for (std::size_t i = static_cast<std::size_t>(index) + 1; i < nodes_.size(); ++i) {
      const auto times = static_cast<int>(std::ranges::count(nodes_[i].src, index));
      const bool passes_on = std::holds_alternative<model::Flatten>(nodes_[i].layer);
      if (times > 0) count += times * (passes_on ? readers_of(static_cast<int>(i)) : 1);
    }
    return count;
  }

  const model::Graph& graph_;
  std::span<const model::Graph::Node> nodes_;
  std::vector<int> map_of_;  ///< by node: index of a tracked map, or -1
  std::vector<bool> flat_;   ///< by node: a vector by its shape alone
  std::vector<TrackedMap<Map>> maps_;
  std::size_t node_ = 0;
};

}  // namespace cputrain::compute
