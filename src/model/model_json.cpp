#include "model/model_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "model/layers/wrong_image_size.h"
#include "model/normalization.h"

namespace cputrain::model {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// The most a model description may ask for; beyond it is a damaged or hostile file.
constexpr std::size_t kMaxLayers = 10000;
constexpr double kMaxNumbers = 1e10;  // in one layer's output or in all parameters

/// One layer of each type that a file may name: all but the image.
template <class... L>
std::vector<Layer> kinds_behind(const std::variant<Input, L...>&) {
  return {L{}...};
}

Layer read_layer(const JsonFields& r, const std::optional<ModelSize>& size) {
  static const std::vector<Layer> kinds = kinds_behind(Layer{});
  const std::string type = r.text("type");
  const auto found = std::ranges::find(kinds, type, type_name);
  if (found == kinds.end()) {
    std::vector<std::string> types;
    for (const Layer& layer : kinds) types.emplace_back(type_name(layer));
    r.wrong(fmt::format("type {} is none of {}{}", printable(type), join(types, ", "),
                        did_you_mean(type, types)));
  }
  Layer layer = *found;
  auto* dense = std::get_if<Dense>(&layer);
  const bool by_classes = dense && r.required("units") == "classes";
  if (by_classes && !size) r.wrong("units must be a number here");
  JsonMembers members(r);
  describe(members, layer);
  if (by_classes) dense->units = size->classes;
  return layer;
}

bool is_loss(const Layer& layer) {
  return std::holds_alternative<SigmoidCrossEntropy>(layer) ||
         std::holds_alternative<SoftmaxCrossEntropy>(layer);
}

/// What backends rely on: RGB images, no layer without a reader but the last, which is the only
/// loss and reads flat logits.
void check_shape(const Graph& graph, const JsonFields& top) {
  if (graph.image().channels != 3) top.wrong("channels must be 3");
  const std::size_t last = graph.nodes().size() - 1;
  std::vector<bool> read(graph.nodes().size());
  for (const auto& node : graph.nodes()) {
    for (const int src : node.src) read[static_cast<std::size_t>(src)] = true;
  }
  for (std::size_t i = 0; i < last; ++i) {
    const auto& node = graph.nodes()[i];
    if (is_loss(node.layer)) top.wrong("sigmoid and softmax must come last");
    if (!read[i]) top.wrong("layer " + node.name + " is read by no other");
  }
  if (!is_loss(graph.back().layer)) top.wrong("the last layer must be sigmoid or softmax");
  const Shape logits = graph.back().dst;
  const bool sigmoid = std::holds_alternative<SigmoidCrossEntropy>(graph.back().layer);
  const bool flat = logits.height == 1 && logits.width == 1;
  if (sigmoid && !(flat && logits.channels == 1)) {
    top.wrong(
        "sigmoid must read one number, for two classes: a dense layer with \"units\": 1; more "
        "classes, or one output for each, need \"softmax\" in its place");
  }
  if (!sigmoid && !(flat && logits.channels >= 2)) {
    top.wrong(
        "softmax must read a list of two or more numbers: a dense layer with \"units\": "
        "\"classes\"");
  }
}

/// Sizes that memory cannot hold, before anything is allocated for them: of the last layer so far,
/// and of the `parameters` up to it, which it adds its own to.
void check_numbers(const Graph& graph, const JsonFields& top, double& parameters) {
  const auto& node = graph.back();
  const double numbers = static_cast<double>(node.dst.height) * node.dst.width * node.dst.channels;
  for (const auto& spec : node.parameters) {
    double product = 1;
    for (const int extent : spec.extents) product *= extent;
    parameters += product;
  }
  if (numbers > kMaxNumbers || parameters > kMaxNumbers) {
    top.wrong("layer " + node.name + " is larger than any machine's memory");
  }
}

using NodesByName = std::map<std::string, int>;

/// " (conv1)", where a layer says its name.
std::string named(const json& entry) {
  constexpr std::size_t kLong = 100;
  const bool has = entry.is_object() && entry.contains("name") && entry.at("name").is_string();
  if (!has) return "";
  const auto name = entry.at("name").get<std::string>();
  return name.size() > kLong ? "" : fmt::format(" ({})", printable(name));
}

std::vector<int> sources(const JsonFields& r, const NodesByName& nodes, int before) {
  if (!r.has("from")) return {before};
  const json& from = r.required("from");
  std::vector<int> src;
  if (!from.is_string() && !from.is_array()) r.wrong("from must name earlier layers");
  for (const json& name : from.is_string() ? json::array({from}) : from) {
    if (!name.is_string() || !nodes.contains(name)) r.wrong("from must name earlier layers");
    src.push_back(nodes.at(name));
  }
  if (src.empty()) r.wrong("from must name earlier layers");
  return src;
}

/// Appends the layer of an entry to the graph, and its name to `nodes`, the names so far.
void add_layer(const json& entry, const std::string& where, const std::optional<ModelSize>& size,
               Graph& graph, NodesByName& nodes) {
  const std::size_t number = graph.nodes().size();
  const JsonFields r =
      model_fields(entry, fmt::format("{}, layer {}{}", where, number, named(entry)));
  const std::string name = r.text("name", "");
  if (nodes.contains(name)) r.wrong("name " + name + " is used twice");
  const Layer layer = read_layer(r, size);
  std::vector<int> src = sources(r, nodes, static_cast<int>(number) - 1);
  r.end();
  try {
    const int index = graph.add(layer, name, std::move(src));
    nodes[graph.back().name] = index;
  } catch (const WrongImageSize& error) {
    if (size) throw error.in(where);  // it is not the file's mistake
    r.wrong(error.what());
  } catch (const Error& error) {
    r.wrong(error.what());
  }
}

/// A number for all colours, or a list of three.
PerColour read_per_colour(const JsonFields& r, const char* key, double min, double max,
                          const PerColour& standard) {
  if (!r.has(key)) return standard;
  if (!r.required(key).is_array()) return static_cast<float>(r.real(key, min, max));
  const std::vector<double> three = r.reals(key, 3, 3, min, max);
  return {static_cast<float>(three[0]), static_cast<float>(three[1]), static_cast<float>(three[2])};
}

ordered_json per_colour_json(const PerColour& values) {
  const auto& [red, green, blue] = values.of;
  if (values == PerColour(red)) return short_number(red);
  return {short_number(red), short_number(green), short_number(blue)};
}

Input read_pixels(const JsonFields& r) {
  const Input standard;
  if (!r.has("mean") && !r.has("deviation")) {
    return {read_per_colour(r, "scale", -1e6, 1e6, standard.scale),
            read_per_colour(r, "offset", -1e6, 1e6, standard.offset)};
  }
  if (r.has("scale") || r.has("offset")) {
    r.wrong("mean and deviation stand in place of scale and offset, not beside them");
  }
  return normalized(read_per_colour(r, "mean", -1e3, 1e3, 0),
                    read_per_colour(r, "deviation", 1e-3, 1e3, 1));
}

/// The input node: what the file says of the pixels, and the size that is asked for.
Graph read_input(const JsonFields& top, const std::string& where,
                 const std::optional<ModelSize>& size) {
  static const json nothing = json::object();
  const JsonFields r =
      model_fields(top.has("input") ? top.required("input") : nothing, where + ", input");
  const Input input = read_pixels(r);
  const Shape image = size
                          ? size->image
                          : Shape{r.whole("height", 1, kMaxExtent), r.whole("width", 1, kMaxExtent),
                                  r.whole("channels", 1, kMaxExtent)};
  r.end();  // where the size is asked for, one in the file would have no effect
  return Graph(image, input);
}

/// {"name": "conv2d", "type": "convolution", "filters": 32, ...}
ordered_json layer_json(const Graph& graph, std::size_t index) {
  const Graph::Node& node = graph.nodes()[index];
  Layer layer = node.layer;
  ordered_json entry{{"name", node.name}, {"type", type_name(layer)}};
  JsonMembers members(entry);
  describe(members, layer);
  if (node.src != std::vector<int>{static_cast<int>(index) - 1}) {
    for (const int src : node.src) entry["from"].push_back(graph.nodes()[src].name);
  }
  return entry;
}

}  // namespace

ordered_json to_json(const Graph& graph) {
  const auto& input = graph.input();
  ordered_json layers = ordered_json::array();
  for (std::size_t i = 1; i < graph.nodes().size(); ++i) layers.push_back(layer_json(graph, i));
  return {{"input",
           {{"height", graph.image().height},
            {"width", graph.image().width},
            {"channels", graph.image().channels},
            {"scale", per_colour_json(input.scale)},
            {"offset", per_colour_json(input.offset)}}},
          {"layers", std::move(layers)}};
}

std::uint64_t fingerprint(const Graph& graph) {
  return Fnv1a().add(json_text(to_json(graph))).value();
}

JsonFields model_fields(const json& object, const std::string& where) {
  return {object, where,
          "(the model cannot be built); mend the file, or see `cputrain export --model-file` for "
          "one that is right",
          /*null_is_missing=*/false};
}

Graph graph_from_json(const json& model, const std::string& where,
                      const std::optional<ModelSize>& size) {
  const JsonFields top = model_fields(model, where);
  Graph graph = read_input(top, where, size);
  NodesByName nodes{{graph.back().name, 0}};
  const json& layers = top.required("layers");
  if (!layers.is_array() || layers.empty() || layers.size() > kMaxLayers) {
    top.wrong(fmt::format("layers must be a list of 1 to {} layers", kMaxLayers));
  }
  double parameters = 0;
  for (const json& entry : layers) {
    add_layer(entry, where, size, graph, nodes);
    check_numbers(graph, top, parameters);
  }
  check_shape(graph, top);
  return graph;
}

}  // namespace cputrain::model
