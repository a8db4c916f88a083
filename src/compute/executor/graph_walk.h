#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
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
  bool has_reader = false;    ///< an operator
  bool diff_changes = false;  ///< its gradient is changed in place on the way back
  bool changed = false;       ///< an operator changes it in place behind its producer
  /// A ReLU made it, so where it is zero its gradient ends.
  bool zeros_are_dead = false;
  /// A capped ReLU made it: where its gradient ends depends on its numbers, which stay.
  bool numbers_matter = false;
  int producer = 0;     ///< operator that writes it
  int diff_until = 0;   ///< operator that is the last to read its gradient, on the way back: the
                        ///< earliest producer of those that share it
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
  int index() const { return static_cast<int>(node_); }
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

  /// The other input of the next node, if that adds two and is the only one that reads this one.
  std::optional<std::size_t> only_next_adds() const {
    if (node_ + 1 == nodes_.size()) return {};
    const model::Graph::Node& next = nodes_[node_ + 1];
    const int self = static_cast<int>(node_);
    if (!std::holds_alternative<model::Add>(next.layer) || next.src.size() != 2) return {};
    if (graph_.readers(self) != 1) return {};
    if (next.src[0] == self) return 1;
    return next.src[1] == self ? std::optional<std::size_t>(0) : std::nullopt;
  }

  /// The activation that input number `i` of the next node lies in.
  const TrackedActivation& input_of_next(std::size_t i) const {
    return activations_[static_cast<std::size_t>(index_of_[nodes_[node_ + 1].src[i]])];
  }

  /// The node's output lies in an activation of its own, which operator `producer` writes.
  void place(const Activation& activation, int producer) {
    TrackedActivation tracked{activation};
    tracked.producer = producer;
    tracked.diff_until = producer;
    index_of_[node_] = static_cast<int>(activations_.size());
    activations_.push_back(tracked);
    count_readers(activations_.back());
  }

  /// Operator number `op` reads the activation.
  Source read(TrackedActivation& tracked, int op) {
    --tracked.unread;
    tracked.has_reader = true;
    const bool adds = tracked.unread > 0;
    if (adds) tracked.last_touch = op;
    return {tracked, adds};
  }

  /// Operator number `op` changes what the node reads in place, and its gradient; no other node may
  /// read that activation, unless place() gave the node a copy of it.
  TrackedActivation& change_in_place(int op) {
    keep_flattened();
    if (index_of_[node_] < 0) index_of_[node_] = index_of_[node().src.front()];
    TrackedActivation& tracked = activations_[static_cast<std::size_t>(index_of_[node_])];
    count_readers(tracked);
    tracked.diff_changes = tracked.changed = true;
    tracked.last_touch = op;
    return tracked;
  }

  /// The gradient of a sum, the newest activation, is that of every part, so they can share one
  /// piece of memory: no copy is made, and along the shortcuts of a residual network it is one for
  /// a whole stack. One part (the keeper) may have other readers, which add to the shared gradient,
  /// or be changed in place; then every other part must have been read by its own producer, and by
  /// those that share its gradient, before that, on the way back. `inputs`: the parts' activations.
  void share_gradient(MemoryPlan& memory, const std::vector<std::size_t>& inputs,
                      std::vector<Source>& parts) {
    const auto changes = [&](std::size_t i) {
      return activation(inputs[i]).shared || activation(inputs[i]).diff_changes;
    };
    const auto may = [&](std::size_t i) {
      return parts[i].wants_diff && !parts[i].adds && std::ranges::count(inputs, inputs[i]) == 1;
    };
    std::size_t keeper = 0;
    while (keeper < parts.size() && !(may(keeper) && changes(keeper))) ++keeper;
    const int touched = keeper < parts.size() ? last_change(activation(inputs[keeper])) : -1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool quiet = !changes(i) && activation(inputs[i]).diff_until > touched;
      parts[i].shares_diff = may(i) && (i == keeper || quiet);
      if (!parts[i].shares_diff) continue;
      memory.merge(newest().diff, parts[i].diff);
      newest().diff_changes |= changes(i);
      newest().diff_until = std::min(newest().diff_until, activation(inputs[i]).diff_until);
      newest().last_touch = std::max(newest().last_touch, last_change(activation(inputs[i])));
    }
  }

  /// The node's output lies in memory as what it reads does.
  void keep_flattened() { flat_[node_] = flat_[node().src.front()]; }

  /// The node flattens: its output is what it reads.
  void flatten() {
    const Shape read = src_shape();
    index_of_[node_] = index_of_[node().src.front()];
    flat_[node_] = flat_[node().src.front()] || read.height > 1 || read.width > 1;
  }

 private:
  /// The operator behind which, on the way back, the activation's gradient stays as it is. Its
  /// producer may be the one that changes it in place.
  static int last_change(const TrackedActivation& tracked) {
    return tracked.diff_changes ? std::max(tracked.last_touch, tracked.producer)
                                : tracked.last_touch;
  }
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
