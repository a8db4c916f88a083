#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/layer.h"

namespace cputrain::model {

/// Layers in execution order. A node's inputs exist before it, so the list is sorted
/// topologically by construction and cannot contain a cycle. Node 0 is the Input; the last node is
/// a cross-entropy once the model is complete.
class Graph {
 public:
  struct Node {
    std::string name;  ///< unique; Keras' names ("conv2d_1", "dense")
    Layer layer;
    std::vector<int> src;                   ///< nodes it reads; empty for the Input
    Shape dst;                              ///< output extents of one sample
    std::vector<ParameterSpec> parameters;  ///< names are whole: "conv2d_1/kernel"
    int origin = 0;                         ///< index in the graph as the model function built it;
                     ///< rewrites keep it (dropout's randomness depends on it)
    double rate = 1;      ///< what the learning rate is multiplied by
    bool frozen = false;  ///< learns nothing; a BatchNorm then always uses its
                          ///< moving statistics
  };

  explicit Graph(Shape image, Input input = {});

  /// Appends a layer that reads the last node (or `src`) and returns its index. Without a name it
  /// gets Keras' next one for its type. Throws Error(usage) where shapes do not fit.
  int add(Layer layer, std::string name = {});
  int add(Layer layer, std::string name, std::vector<int> src);
  /// The same with the layer of another graph's node, whose name, origin, rate and freezing it
  /// keeps.
  int append(const Node&, std::vector<int> src);

  std::span<const Node> nodes() const { return nodes_; }
  const Node& back() const { return nodes_.back(); }
  Shape image() const { return nodes_.front().dst; }
  /// How images become numbers.
  const Input& input() const { return std::get<Input>(nodes_.front().layer); }
  /// Extents of what node `index` reads (its first input).
  Shape src_shape(int index) const { return nodes_[nodes_[index].src.front()].dst; }

  /// Nodes that read node `index`, counted as often as they do.
  int readers(int index) const;

  std::size_t parameter_count() const;
  std::size_t learnt_count() const;
  /// Whether images of a training step depend on each other.
  bool has_batch_norm() const;
  /// FLOPs of one image in a training step, counting direct convolution: 2 * MACs * (forward,
  /// backward-weights of layers that learn, and backward-data behind the first of these).
  double training_flops() const;

 private:
  std::string next_name(const Layer&);
  std::vector<Node> nodes_;
  std::set<std::string> names_;
  std::map<std::string, int> next_number_;  ///< by Keras' name of a type
};

/// Starting values in the canonical layout: kernels by their layer's Initializer, biases 0 unless
/// it says otherwise, batch norm's gamma and moving variance 1. A function of (seed, node), rounded
/// to float so that every precision starts from the same numbers.
std::vector<double> initial_values(const Graph::Node& node, const ParameterSpec& parameter,
                                   std::uint64_t seed);

}  // namespace cputrain::model
