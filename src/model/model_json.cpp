#include "model/model_json.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cputrain {
namespace {

using nlohmann::json;

/// The most a model description may ask for; beyond it is a damaged or hostile file.
constexpr int kMaxExtent = 65536, kMaxLayers = 10000;

const char* padding_name(Padding padding) { return padding == Padding::same ? "same" : "valid"; }

json layer_fields(const Layer& layer) {
  const auto pool = [](const auto& l) {
    return json{{"size", l.size}, {"stride", l.stride}, {"padding", padding_name(l.padding)}};
  };
  return std::visit(Overloaded{
                        [](const Convolution& l) {
                          return json{{"filters", l.filters},
                                      {"kernel", l.kernel},
                                      {"stride", l.stride},
                                      {"padding", padding_name(l.padding)},
                                      {"bias", l.bias}};
                        },
                        [&](const MaxPool& l) { return pool(l); },
                        [&](const AveragePool& l) { return pool(l); },
                        [](const Dense& l) {
                          return json{{"units", l.units}, {"bias", l.bias}};
                        },
                        [](const Dropout& l) {
                          return json{{"rate", l.rate}};
                        },
                        [](const auto&) { return json::object(); },
                    },
                    layer);
}

/// Reads one object's fields, with the place of a mistake in the message.
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) wrong("is not an object");
  }

  int extent(const char* key) const {
    const json& value = field(key);
    if (!value.is_number_integer() || value < 1 || value > kMaxExtent) {
      wrong(fmt::format("{} must be a whole number from 1 to {}", key, kMaxExtent));
    }
    return value.get<int>();
  }
  float number(const char* key) const {
    if (!field(key).is_number()) wrong(fmt::format("{} must be a number", key));
    return field(key).get<float>();
  }
  bool flag(const char* key) const {
    if (!field(key).is_boolean()) wrong(fmt::format("{} must be true or false", key));
    return field(key).get<bool>();
  }
  std::string text(const char* key) const {
    if (!field(key).is_string()) wrong(fmt::format("{} must be text", key));
    return field(key).get<std::string>();
  }
  Padding padding() const {
    const std::string name = text("padding");
    if (name != "same" && name != "valid") wrong("padding must be same or valid");
    return name == "same" ? Padding::same : Padding::valid;
  }
  [[noreturn]] void wrong(const std::string& what) const {
    fail(ExitCode::data, fmt::format("{}: {} (the model cannot be rebuilt); use a file that this "
                                     "program wrote",
                                     where_, what));
  }
  const json& field(const char* key) const {
    if (!object_.contains(key)) wrong(fmt::format("{} is missing", key));
    return object_.at(key);
  }
  bool has(const char* key) const { return object_.contains(key); }

 private:
  const json& object_;
  std::string where_;
};

Layer read_layer(const Reader& r) {
  const std::string type = r.text("type");
  if (type == "convolution") {
    return Convolution{r.extent("filters"), r.extent("kernel"), r.extent("stride"), r.padding(),
                       r.flag("bias")};
  }
  if (type == "max_pool") return MaxPool{r.extent("size"), r.extent("stride"), r.padding()};
  if (type == "average_pool") return AveragePool{r.extent("size"), r.extent("stride"), r.padding()};
  if (type == "global_average_pool") return GlobalAveragePool{};
  if (type == "dense") return Dense{r.extent("units"), r.flag("bias")};
  if (type == "relu") return Relu{};
  if (type == "flatten") return Flatten{};
  if (type == "sigmoid") return SigmoidCrossEntropy{};
  if (type == "softmax") return SoftmaxCrossEntropy{};
  if (type == "dropout") {
    const float rate = r.number("rate");
    if (!(rate >= 0 && rate < 1)) r.wrong("rate must be from 0 to below 1");
    return Dropout{rate};
  }
  r.wrong("type " + type + " is not known");
}

/// What backends rely on: RGB pictures, and one loss, at the end, on flat logits.
void check_shape(const Graph& graph, const Reader& top) {
  if (graph.image().channels != 3) top.wrong("channels must be 3");
  for (std::size_t i = 1; i < graph.nodes().size(); ++i) {
    const Layer& layer = graph.nodes()[i].layer;
    const bool sigmoid = std::holds_alternative<SigmoidCrossEntropy>(layer);
    if (!sigmoid && !std::holds_alternative<SoftmaxCrossEntropy>(layer)) continue;
    const Shape logits = graph.nodes()[i].dst;
    if (i + 1 != graph.nodes().size()) top.wrong("sigmoid and softmax must come last");
    if (logits.height != 1 || logits.width != 1 || (sigmoid && logits.channels != 1)) {
      top.wrong("sigmoid must read one number, softmax a list of numbers");
    }
  }
}

}  // namespace

json to_json(const Graph& graph) {
  const auto nodes = graph.nodes();
  const auto& input = std::get<Input>(nodes[0].layer);
  json layers = json::array();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    json layer = layer_fields(nodes[i].layer);
    layer["name"] = nodes[i].name;
    layer["type"] = type_name(nodes[i].layer);
    if (nodes[i].src != std::vector<int>{static_cast<int>(i) - 1}) {
      for (const int src : nodes[i].src) layer["from"].push_back(nodes[src].name);
    }
    layers.push_back(std::move(layer));
  }
  return {{"input",
           {{"height", graph.image().height},
            {"width", graph.image().width},
            {"channels", graph.image().channels},
            {"scale", input.scale},
            {"offset", input.offset}}},
          {"layers", std::move(layers)}};
}

Graph graph_from_json(const json& model, const std::string& where) {
  const Reader top(model, where);
  const Reader input(top.field("input"), where + ", input");
  Graph graph({input.extent("height"), input.extent("width"), input.extent("channels")},
              {input.number("scale"), input.number("offset")});
  const json& layers = top.field("layers");
  if (!layers.is_array() || layers.empty() || layers.size() > kMaxLayers) {
    top.wrong(fmt::format("layers must be a list of 1 to {} layers", kMaxLayers));
  }
  std::map<std::string, int> by_name{{"input", 0}};
  for (const json& entry : layers) {
    const Reader r(entry, fmt::format("{}, layer {}", where, by_name.size()));
    const std::string name = r.text("name");
    std::vector<int> src{static_cast<int>(by_name.size()) - 1};
    if (r.has("from")) {
      if (!r.field("from").is_array() || r.field("from").size() != 1) {
        r.wrong("from must name one earlier layer");
      }
      const json& from = r.field("from").front();
      if (!from.is_string() || !by_name.contains(from)) r.wrong("from must name an earlier layer");
      src = {by_name.at(from)};
    }
    if (name.empty() || by_name.contains(name)) r.wrong("name is empty or used twice");
    try {
      by_name[name] = graph.add(read_layer(r), name, std::move(src));
    } catch (const Error& error) {
      fail(ExitCode::data, where + ": " + error.what());
    }
  }
  check_shape(graph, top);
  const Layer& last = graph.back().layer;
  if (!std::holds_alternative<SigmoidCrossEntropy>(last) &&
      !std::holds_alternative<SoftmaxCrossEntropy>(last)) {
    top.wrong("the last layer must be sigmoid or softmax");
  }
  return graph;
}

}  // namespace cputrain
