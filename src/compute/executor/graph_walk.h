#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "compute/executor/op.h"
#include "model/graph.h"

namespace cputrain::compute {

/// An activation, and what the operators made so far do to it.
struct TrackedActivation : Activation {
  int unread = 0;             ///< readers that have no operator yet
  bool shared = false;        ///< has several readers
  bool diff_changes = false;  ///< its gradient is changed in place on the way back
  /// A ReLU made it, so where it is zero its gradient ends.
  bool zeros_are_dead = false;
  int producer = 0;     ///< operator that writes it
  int last_touch = -1;  ///< last operator that changes it in place, or reads it and adds to its
                        ///< gradient; of the activations that share the gradient, too
};

/// How every backend that runs a graph as a list of operators walks it: node by node, one operator
/// for each node or for a few of them, keeping for each node the activation that holds its output.
/// Flatten needs no operator: its output is the activation that it reads, of which the walk
/// remembers that it is a vector only by its shape.
class GraphWalk {
 public:
  /// Stands on the input, whose output has no activation yet. The graph is borrowed.
  explicit GraphWalk(const model::Graph& graph)
      : graph_(graph), nodes_(graph.nodes()), index_of_(nodes_.size(), -1), flat_(nodes_.size()) {}

  const model::Graph::Node& node() const { return nodes_[node_]; }
  bool ended() const { return node_ == nodes_.size(); }
  void advance() { ++node_; }

  /// The extents of what the node reads first.
  Shape src_shape() const { return graph_.src_shape(static_cast<int>(node_)); }

  /// The activation that input number `i` of the node lies in.
  TrackedActivation& input(std::size_t i = 0) { return activations_[input_index(i)]; }
  /// The activation that output `src` of an earlier node lies in.
  TrackedActivation& output_of(int src) {
    return activations_[static_cast<std::size_t>(index_of_[src])];
  }
  std::size_t input_index(std::size_t i) const {
    return static_cast<std::size_t>(index_of_[node().src[i]]);
  }
  TrackedActivation& activation(std::size_t index) { return activations_[index]; }
  /// The activation that was made last.
  TrackedActivation& newest() { return activations_.back(); }
  /// Whether input `i` is a vector by its shape that still lies in memory in the shape it had.
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

  /// The node's output lies in an activation of its own, which operator `producer` writes.
  void place(const Activation& activation, int producer) {
    TrackedActivation tracked{activation};
    tracked.producer = producer;
    index_of_[node_] = static_cast<int>(activations_.size());
    activations_.push_back(tracked);
    count_readers(activations_.back());
  }

  /// Operator number `op` reads the activation.
  Source read(TrackedActivation& tracked, int op) {
    --tracked.unread;
    const bool adds = tracked.unread > 0;
    if (adds) tracked.last_touch = op;
    return {tracked, adds};
  }

  /// Operator number `op` changes what the node reads in place, and its gradient; no other node may
  /// read that activation, unless place() gave the node a copy of it.
  TrackedActivation& change_in_place(int op) {
    flat_[node_] = flat_[node().src.front()];
    if (index_of_[node_] < 0) index_of_[node_] = index_of_[node().src.front()];
    TrackedActivation& tracked = activations_[static_cast<std::size_t>(index_of_[node_])];
    count_readers(tracked);
    tracked.diff_changes = true;
    tracked.last_touch = op;
    return tracked;
  }

  /// The node flattens: its output is what it reads.
  void flatten() {
    const Shape read = src_shape();
    index_of_[node_] = index_of_[node().src.front()];
    flat_[node_] = flat_[node().src.front()] || read.height > 1 || read.width > 1;
  }

 private:
  /// Operators that will read the node's output.
  void count_readers(TrackedActivation& tracked) const {
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
  std::vector<int> index_of_;  ///< by node: of its tracked activation, or -1
  std::vector<bool> flat_;     ///< by node: a vector by its shape alone
  std::vector<TrackedActivation> activations_;
  std::size_t node_ = 0;
};

}  // namespace cputrain::compute
