#pragma once

#include <string>
#include <vector>

#include "backends/onnx/schema.h"
#include "core/casts.h"
#include "model/exported_model.h"

namespace cputrain::onnx {

/// Turns the layers of a model into nodes of an ONNX graph. Activations are maps [N, C, H, W] until
/// something reads them as a vector [N, n], which has our order of numbers: height, width, channel.
class OnnxGraphWriter {
 public:
  OnnxGraphWriter(const model::ExportedModel& model, ::onnx::GraphProto& graph)
      : model_(model), graph_(graph) {}

  void write();

 private:
  /// What a node of ours computes, as ONNX knows it.
  struct Value {
    std::string name;
    bool is_map;  ///< [N, C, H, W], else [N, n]
    Shape shape;
  };

  Value layer(const model::Graph::Node&);
  Value input(const model::Graph::Node&);
  Value convolution(const model::Graph::Node&, const model::Convolution&);
  Value zero_pad(const model::Graph::Node&, const model::ZeroPad&);
  Value dense(const model::Graph::Node&, const model::Dense&);
  Value batch_norm(const model::Graph::Node&, const model::BatchNorm&);
  Value layer_norm(const model::Graph::Node&, const model::LayerNorm&);
  Value add(const model::Graph::Node&);
  Value concat(const model::Graph::Node&);
  Value relu6(const model::Graph::Node&);
  Value silu(const model::Graph::Node&);
  Value probabilities(const model::Graph::Node&, const char* op_type);
  template <class Pool>
  Value pool(const model::Graph::Node&, const Pool&, const char* op_type);

  /// What the node reads, in one form or the other; a conversion is named after the node.
  const Value& source(const model::Graph::Node& node) const {
    return values_[to_size(node.src.front())];
  }
  Value as_map(const Value&, const std::string& reader);
  Value as_vector(const Value&, const std::string& reader);

  ::onnx::NodeProto& node(const char* op_type, const std::string& name,
                          std::vector<std::string> inputs, const std::string& output);
  void tensor(const std::string& name, const std::vector<std::int64_t>& extents,
              const std::vector<float>& values);
  void tensor(const std::string& name, const std::vector<std::int64_t>& values);
  /// A parameter as it is, and its name.
  std::string parameter(const model::ParameterSpec&);

  const model::ExportedModel& model_;
  ::onnx::GraphProto& graph_;
  std::vector<Value> values_;  ///< by node of ours
};

}  // namespace cputrain::onnx
