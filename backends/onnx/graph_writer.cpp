#include "backends/onnx/graph_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "backends/onnx/resize_writer.h"
#include "core/casts.h"

namespace cputrain::onnx {
namespace {

/// A convolution's kernel (kernel, kernel, in, out) as (out, in, kernel, kernel).
std::vector<float> to_oihw(const std::vector<float>& hwio, const std::vector<int>& extents) {
  const std::size_t area = to_size(extents[0]) * to_size(extents[1]);
  const std::size_t in = to_size(extents[2]), out = to_size(extents[3]);
  std::vector<float> result;
  result.reserve(hwio.size());
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t k = 0; k < area; ++k) result.push_back(hwio[(k * in + i) * out + o]);
    }
  }
  return result;
}

void attribute(::onnx::NodeProto& node, const char* name, const std::vector<std::int64_t>& values) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) a.add_ints(value);
}

void attribute(::onnx::NodeProto& node, const char* name, std::int64_t value) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::INT);
  a.set_i(value);
}

void attribute(::onnx::NodeProto& node, const char* name, float value) {
  auto& a = *node.add_attribute();
  a.set_name(name);
  a.set_type(::onnx::AttributeProto::FLOAT);
  a.set_f(value);
}

/// kernel_shape, strides and pads (top, left, bottom, right) of what slides over a map.
void window(::onnx::NodeProto& node, const Shape& src, model::Padding padding, int size,
            int stride) {
  const model::PadAmount rows = model::pad_amount(padding, src.height, size, stride);
  const model::PadAmount columns = model::pad_amount(padding, src.width, size, stride);
  attribute(node, "kernel_shape", {size, size});
  attribute(node, "strides", {stride, stride});
  attribute(node, "pads", {rows.before, columns.before, rows.after, columns.after});
}

/// [N, extents...], N being the number of images.
void describe(::onnx::ValueInfoProto& value, const std::string& name,
              const std::vector<std::int64_t>& extents) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(::onnx::TensorProto::FLOAT);
  type.mutable_shape()->add_dim()->set_dim_param("N");
  for (const std::int64_t extent : extents) type.mutable_shape()->add_dim()->set_dim_value(extent);
}

/// Bytes [N, height, width, 3], of any size.
void describe_any_size(::onnx::ValueInfoProto& value, const std::string& name) {
  value.set_name(name);
  auto& type = *value.mutable_type()->mutable_tensor_type();
  type.set_elem_type(::onnx::TensorProto::UINT8);
  for (const char* dimension : {"N", "height", "width"}) {
    type.mutable_shape()->add_dim()->set_dim_param(dimension);
  }
  type.mutable_shape()->add_dim()->set_dim_value(3);
}

/// Names of layers are the user's; what a layer computes must not be taken for `image`.
std::string output_of(const std::string& layer) { return layer + ":0"; }

/// Whether a pool reads the node, if only through a dropout, which is not exported.
bool is_pooled(const model::Graph& graph, const model::Graph::Node& node) {
  const auto nodes = graph.nodes();
  return std::ranges::any_of(nodes, [&](const model::Graph::Node& reader) {
    const bool reads =
        std::ranges::any_of(reader.src, [&](int src) { return nodes[src].name == node.name; });
    if (!reads) return false;
    return std::holds_alternative<model::MaxPool>(reader.layer) ||
           std::holds_alternative<model::AveragePool>(reader.layer) ||
           (std::holds_alternative<model::Dropout>(reader.layer) && is_pooled(graph, reader));
  });
}

constexpr const char* kInput = "image";
constexpr const char* kOutput = "probabilities";

}  // namespace

void OnnxGraphWriter::write() {
  const Shape image = model_.graph.image();
  graph_.set_name(model_.name);
  if (model_.images.resized_inside) {
    describe_any_size(*graph_.add_input(), kInput);
  } else {
    describe(*graph_.add_input(), kInput, {image.height, image.width, image.channels});
  }
  for (const auto& n : model_.graph.nodes()) values_.push_back(layer(n));
  describe(*graph_.add_output(), kOutput, {model_.graph.back().dst.channels});
}

OnnxGraphWriter::Value OnnxGraphWriter::layer(const model::Graph::Node& n) {
  return std::visit(
      Overloaded{
          [&](const model::Input&) { return input(n); },
          [&](const model::Convolution& l) { return convolution(n, l); },
          [&](const model::ZeroPad& l) { return zero_pad(n, l); },
          [&](const model::MaxPool& l) { return pool(n, l, "MaxPool"); },
          [&](const model::AveragePool& l) { return pool(n, l, "AveragePool"); },
          [&](const model::GlobalAveragePool&) {
            const Value src = as_map(source(n), n.name);
            node("GlobalAveragePool", n.name, {src.name}, output_of(n.name));
            return Value{output_of(n.name), true, n.dst};
          },
          [&](const model::Dense& l) { return dense(n, l); },
          [&](const model::BatchNorm& l) { return batch_norm(n, l); },
          [&](const model::LayerNorm& l) { return layer_norm(n, l); },
          [&](const model::Add&) { return add(n); },
          [&](const model::Concat&) { return concat(n); },
          [&](const model::Relu&) {
            node("Relu", n.name, {source(n).name}, output_of(n.name));
            return Value{output_of(n.name), source(n).is_map, n.dst};
          },
          [&](const model::Relu6&) { return relu6(n); },
          [&](const model::LeakyRelu& l) {
            auto& bent = node("LeakyRelu", n.name, {source(n).name}, output_of(n.name));
            attribute(bent, "alpha", l.slope);
            return Value{output_of(n.name), source(n).is_map, n.dst};
          },
          [&](const model::Silu&) { return silu(n); },
          [&](const model::Dropout&) { return source(n); },
          [&](const model::Flatten&) { return as_vector(source(n), n.name); },
          [&](const model::SigmoidCrossEntropy&) { return probabilities(n, "Sigmoid"); },
          [&](const model::SoftmaxCrossEntropy&) { return probabilities(n, "Softmax"); },
      },
      n.layer);
}

OnnxGraphWriter::Value OnnxGraphWriter::input(const model::Graph::Node& n) {
  const auto& layer = std::get<model::Input>(n.layer);
  const bool inside = model_.images.resized_inside;
  std::string pixels = inside ? write_resize(model_.images, n.dst, kInput, graph_) : kInput;
  const auto change = [&](const char* op_type, const std::string& by, const PerColour& values,
                          float neutral) {
    if (values == neutral) return;
    const auto& [red, green, blue] = values.of;
    const bool alike = values == red;
    // Pixels are [N, H, W, 3], but maps where the graph has resized them.
    const std::vector<std::int64_t> by_colour =
        inside ? std::vector<std::int64_t>{3, 1, 1} : std::vector<std::int64_t>{3};
    tensor("image/" + by, alike ? std::vector<std::int64_t>{1} : by_colour,
           alike ? std::vector{red} : std::vector{red, green, blue});
    node(op_type, "image/with_" + by, {pixels, "image/" + by}, "image/with_" + by + ":0");
    pixels = "image/with_" + by + ":0";
  };
  change("Mul", "scale", layer.scale, 1);
  change("Add", "offset", layer.offset, 0);
  if (inside) return {pixels, true, n.dst};
  attribute(node("Transpose", "image/transpose", {pixels}, "image/map"), "perm", {0, 3, 1, 2});
  return {"image/map", true, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::convolution(const model::Graph::Node& n,
                                                    const model::Convolution& l) {
  const Value src = as_map(source(n), n.name);
  const model::ParameterSpec& kernel = n.parameters.front();
  const std::vector<int>& e = kernel.extents;
  tensor(kernel.name, {e[3], e[2], e[0], e[1]}, to_oihw(model_.values(kernel.name), e));
  std::vector<std::string> inputs{src.name, kernel.name};
  if (l.bias) inputs.push_back(parameter(n.parameters[1]));
  auto& added = node("Conv", n.name, inputs, output_of(n.name));
  window(added, src.shape, l.padding, l.kernel, l.stride);
  if (l.groups != 1) attribute(added, "group", static_cast<std::int64_t>(l.groups));
  return {output_of(n.name), true, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::zero_pad(const model::Graph::Node& n,
                                                 const model::ZeroPad& l) {
  const Value src = as_map(source(n), n.name);
  const std::string pads = n.name + "/pads";
  // ONNX Runtime (from 1.17 on) and onnx-optimizer move a Pad of zeros into the pool behind it. A
  // MaxPool's own padding is minus infinity, an AveragePool's does not count: other answers. One
  // row too many, cut off again, keeps the two apart.
  const int extra = is_pooled(model_.graph, n) ? 1 : 0;
  const std::string padded = extra ? n.name + "/padded" : output_of(n.name);
  tensor(pads, {0, 0, l.top + extra, l.left, 0, 0, l.bottom, l.right});
  node("Pad", n.name, {src.name, pads}, padded);  // mode constant, with zeros
  if (extra) {
    const std::string cut = n.name + "/cut";
    tensor(cut + "/starts", {1});
    tensor(cut + "/ends", {n.dst.height + 1});
    tensor(cut + "/axes", {2});
    node("Slice", cut, {padded, cut + "/starts", cut + "/ends", cut + "/axes"}, output_of(n.name));
  }
  return {output_of(n.name), true, n.dst};
}

template <class Pool>
OnnxGraphWriter::Value OnnxGraphWriter::pool(const model::Graph::Node& n, const Pool& l,
                                             const char* op_type) {
  const Value src = as_map(source(n), n.name);
  auto& pooled = node(op_type, n.name, {src.name}, output_of(n.name));
  window(pooled, src.shape, l.padding, l.size, l.stride);
  if constexpr (std::is_same_v<Pool, model::AveragePool>) {
    attribute(pooled, "count_include_pad", std::int64_t{0});
  }
  return {output_of(n.name), true, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::dense(const model::Graph::Node& n, const model::Dense& l) {
  std::vector<std::string> inputs{as_vector(source(n), n.name).name, parameter(n.parameters[0])};
  if (l.bias) inputs.push_back(parameter(n.parameters[1]));
  node("Gemm", n.name, inputs, output_of(n.name));
  return {output_of(n.name), false, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::batch_norm(const model::Graph::Node& n,
                                                   const model::BatchNorm& l) {
  std::vector<std::string> inputs{source(n).name};
  for (const model::ParameterSpec& spec : n.parameters) inputs.push_back(parameter(spec));
  attribute(node("BatchNormalization", n.name, inputs, output_of(n.name)), "epsilon", l.epsilon);
  return {output_of(n.name), source(n).is_map, n.dst};
}

/// No operator of this set. Channels are the second axis of maps and of vectors.
OnnxGraphWriter::Value OnnxGraphWriter::layer_norm(const model::Graph::Node& n,
                                                   const model::LayerNorm& l) {
  const bool is_map = source(n).is_map;
  std::string last = source(n).name;
  const auto step = [&](const char* op_type, const std::string& word,
                        std::vector<std::string> inputs) -> ::onnx::NodeProto& {
    const std::string name = n.name + "/" + word;
    auto& added = node(op_type, name, std::move(inputs), output_of(name));
    last = output_of(name);
    return added;
  };
  const auto mean = [&](const std::string& word, const std::string& of) {
    attribute(step("ReduceMean", word, {of}), "axes", std::vector<std::int64_t>{1});
  };
  const std::string src = last;
  mean("mean", src);
  step("Sub", "centred", {src, last});
  const std::string centred = last, epsilon = n.name + "/epsilon";
  step("Mul", "squares", {centred, centred});
  mean("variance", last);
  tensor(epsilon, {}, {l.epsilon});
  step("Add", "with_epsilon", {last, epsilon});
  step("Sqrt", "deviation", {last});
  step("Div", "normal", {centred, last});
  for (const model::ParameterSpec& spec : n.parameters) {
    const std::int64_t channels = spec.extents.front();
    const bool scales = l.scale && &spec == &n.parameters.front();
    const std::vector<std::int64_t> of_map{channels, 1, 1}, of_vector{channels};
    tensor(spec.name, is_map ? of_map : of_vector, model_.values(spec.name));
    step(scales ? "Mul" : "Add", scales ? "scaled" : "moved", {last, spec.name});
  }
  return {last, is_map, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::add(const model::Graph::Node& n) {
  bool is_map = false;
  for (const int src : n.src) is_map |= values_[to_size(src)].is_map;
  std::string sum;
  for (std::size_t k = 0; k < n.src.size(); ++k) {
    const Value& value = values_[to_size(n.src[k])];
    const std::string step = fmt::format("{}/{}", n.name, k);
    const Value term = is_map ? as_map(value, step) : value;
    if (k == 0) {
      sum = term.name;
      continue;
    }
    const bool last = k + 1 == n.src.size();
    const std::string output = last ? output_of(n.name) : output_of(step);
    node("Add", last ? n.name : step, {sum, term.name}, output);
    sum = output;
  }
  return {sum, is_map, n.dst};
}

/// Maps one behind the other by their channels; vectors by their numbers.
OnnxGraphWriter::Value OnnxGraphWriter::concat(const model::Graph::Node& n) {
  bool is_map = false;
  for (const int src : n.src) is_map |= values_[to_size(src)].is_map;
  std::vector<std::string> parts;
  for (std::size_t k = 0; k < n.src.size(); ++k) {
    const Value& value = values_[to_size(n.src[k])];
    parts.push_back(is_map ? as_map(value, fmt::format("{}/{}", n.name, k)).name : value.name);
  }
  attribute(node("Concat", n.name, parts, output_of(n.name)), "axis", std::int64_t{1});
  return {output_of(n.name), is_map, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::relu6(const model::Graph::Node& n) {
  const std::string least = n.name + "/least", most = n.name + "/most";
  tensor(least, {}, {0.0f});
  tensor(most, {}, {6.0f});
  node("Clip", n.name, {source(n).name, least, most}, output_of(n.name));
  return {output_of(n.name), source(n).is_map, n.dst};
}

/// No operator of this set.
OnnxGraphWriter::Value OnnxGraphWriter::silu(const model::Graph::Node& n) {
  const std::string sigmoid = n.name + "/sigmoid";
  node("Sigmoid", sigmoid, {source(n).name}, output_of(sigmoid));
  node("Mul", n.name, {source(n).name, output_of(sigmoid)}, output_of(n.name));
  return {output_of(n.name), source(n).is_map, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::probabilities(const model::Graph::Node& n,
                                                      const char* op_type) {
  const Value logits = as_vector(source(n), n.name);
  auto& last = node(op_type, n.name, {logits.name}, kOutput);
  if (std::holds_alternative<model::SoftmaxCrossEntropy>(n.layer))
    attribute(last, "axis", std::int64_t{1});
  return {kOutput, false, n.dst};
}

OnnxGraphWriter::Value OnnxGraphWriter::as_map(const Value& value, const std::string& reader) {
  if (value.is_map) return value;
  const std::string shape = reader + "/shape", map = reader + "/map";
  tensor(shape, {0, value.shape.channels, 1, 1});  // 0: as many images as there are
  node("Reshape", map, {value.name, shape}, output_of(map));
  return {output_of(map), true, value.shape};
}

OnnxGraphWriter::Value OnnxGraphWriter::as_vector(const Value& value, const std::string& reader) {
  if (!value.is_map) return value;
  std::string map = value.name;
  if (value.shape.height * value.shape.width > 1) {  // our order: height, width, channel
    const std::string turned = reader + "/transpose";
    attribute(node("Transpose", turned, {map}, output_of(turned)), "perm", {0, 2, 3, 1});
    map = output_of(turned);
  }
  const std::string flat = reader + "/flatten";
  attribute(node("Flatten", flat, {map}, output_of(flat)), "axis", std::int64_t{1});
  return {output_of(flat), false, {1, 1, to_int(value.shape.size())}};
}

::onnx::NodeProto& OnnxGraphWriter::node(const char* op_type, const std::string& name,
                                         std::vector<std::string> inputs,
                                         const std::string& output) {
  auto& added = *graph_.add_node();
  added.set_op_type(op_type);
  added.set_name(name);
  for (std::string& input : inputs) added.add_input(std::move(input));
  added.add_output(output);
  return added;
}

void OnnxGraphWriter::tensor(const std::string& name, const std::vector<std::int64_t>& extents,
                             const std::vector<float>& values) {
  auto& added = *graph_.add_initializer();
  added.set_name(name);
  added.set_data_type(::onnx::TensorProto::FLOAT);
  for (const std::int64_t extent : extents) added.add_dims(extent);
  added.set_raw_data(values.data(), values.size() * sizeof(float));
}

void OnnxGraphWriter::tensor(const std::string& name, const std::vector<std::int64_t>& values) {
  auto& added = *graph_.add_initializer();
  added.set_name(name);
  added.set_data_type(::onnx::TensorProto::INT64);
  added.add_dims(static_cast<std::int64_t>(values.size()));
  added.set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
}

std::string OnnxGraphWriter::parameter(const model::ParameterSpec& spec) {
  tensor(spec.name, {spec.extents.begin(), spec.extents.end()}, model_.values(spec.name));
  return spec.name;
}

}  // namespace cputrain::onnx
