#include "model/model_json.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/json_fields.h"
#include "core/text.h"
#include "model/normalization.h"

namespace cputrain::model {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

/// The most a model description may ask for; beyond it is a damaged or hostile file.
constexpr int kMaxExtent = 65536;
constexpr std::size_t kMaxLayers = 10000;
constexpr double kMaxNumbers = 1e10;  // in one layer's output or in all parameters

ordered_json window_fields(const char* size_name, int size, int stride, Padding padding) {
  return {{size_name, size}, {"stride", stride}, {"padding", word_of(padding)}};
}

/// The number with the fewest digits that is this float again: 0.99, not 0.9900000095367432.
double short_number(float value) { return std::stod(fmt::format("{}", value)); }

/// What most layers with a kernel do without is written only where there is some.
ordered_json with_rarities(ordered_json fields, float l2, Initializer init) {
  if (l2 != 0) fields["l2"] = short_number(l2);
  if (init != Initializer::glorot_uniform) fields["init"] = word_of(init);
  return fields;
}

Padding read_padding(const JsonFields& r) {
  const bool is_text = !r.has("padding") || r.required("padding").is_string();
  const auto padding = is_text ? value_named<Padding>(r.text("padding", "valid")) : std::nullopt;
  if (!padding) {
    r.wrong("padding must be \"valid\", \"same\" or \"half\"; a zero_pad layer gives any other");
  }
  return *padding;
}

Initializer read_init(const JsonFields& r) {
  const auto init = value_named<Initializer>(r.text("init", "glorot_uniform"));
  if (!init) r.wrong("init must be one of " + join(all_words<Initializer>(), ", "));
  return *init;
}

Convolution read_convolution(const JsonFields& r) {
  return {r.whole("filters", 1, kMaxExtent),
          r.whole("kernel", 1, kMaxExtent),
          r.whole("stride", 1, kMaxExtent, 1),
          read_padding(r),
          r.truth("bias", true),
          static_cast<float>(r.real("l2", 0, 1e6, 0)),
          r.whole("groups", 1, kMaxExtent, 1),
          read_init(r)};
}

template <class Pool>
Pool read_pool(const JsonFields& r) {
  const int size = r.whole("size", 1, kMaxExtent);
  return {size, r.whole("stride", 1, kMaxExtent, size), read_padding(r)};
}

Dense read_dense(const JsonFields& r, const std::optional<ModelSize>& size) {
  const bool open = r.has("units") && r.required("units") == "classes";
  if (open && !size) r.wrong("units must be a number here");
  return {.units = open ? size->classes : r.whole("units", 1, kMaxExtent),
          .bias = r.truth("bias", true),
          .l2 = static_cast<float>(r.real("l2", 0, 1e6, 0)),
          .init = read_init(r)};
}

ZeroPad read_zero_pad(const JsonFields& r) {
  const auto side = [&](const char* name) { return r.whole(name, 0, kMaxExtent, 0); };
  return {side("top"), side("bottom"), side("left"), side("right")};
}

BatchNorm read_batch_norm(const JsonFields& r) {
  const BatchNorm standard;
  return {static_cast<float>(r.real("epsilon", 1e-12, 1, standard.epsilon)),
          static_cast<float>(r.real("momentum", 0, 1, standard.momentum))};
}

Dropout read_dropout(const JsonFields& r) { return {static_cast<float>(r.real("rate", 0, 0.999))}; }

/// Layers without figures.
Layer read_plain_layer(const std::string& type, const JsonFields& r) {
  static const std::map<std::string, Layer> layers{{"global_average_pool", GlobalAveragePool{}},
                                                   {"add", Add{}},
                                                   {"concat", Concat{}},
                                                   {"relu", Relu{}},
                                                   {"relu6", Relu6{}},
                                                   {"silu", Silu{}},
                                                   {"flatten", Flatten{}},
                                                   {"sigmoid", SigmoidCrossEntropy{}},
                                                   {"softmax", SoftmaxCrossEntropy{}}};
  const auto found = layers.find(type);
  if (found != layers.end()) return found->second;
  std::vector<std::string> types{"convolution", "max_pool",   "average_pool", "dense",
                                 "zero_pad",    "batch_norm", "dropout"};
  for (const auto& [name, layer] : layers) types.push_back(name);
  r.wrong(fmt::format("type {} is none of {}{}", printable(type), join(types, ", "),
                      did_you_mean(type, types)));
}

Layer read_layer(const JsonFields& r, const std::optional<ModelSize>& size) {
  const std::string type = r.text("type");
  if (type == "convolution") return read_convolution(r);
  if (type == "max_pool") return read_pool<MaxPool>(r);
  if (type == "average_pool") return read_pool<AveragePool>(r);
  if (type == "dense") return read_dense(r, size);
  if (type == "zero_pad") return read_zero_pad(r);
  if (type == "batch_norm") return read_batch_norm(r);
  if (type == "dropout") return read_dropout(r);
  return read_plain_layer(type, r);
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

/// Builds the graph layer by layer and knows the names given so far.
class GraphReader {
 public:
  GraphReader(Graph graph, const std::string& where, const std::optional<ModelSize>& size)
      : graph_(std::move(graph)), where_(where), size_(size) {}

  void add(const json& entry, std::size_t number) {
    const JsonFields r =
        model_fields(entry, fmt::format("{}, layer {}{}", where_, number, named(entry)));
    const std::string name = r.text("name", "");
    if (by_name_.contains(name)) r.wrong("name " + name + " is used twice");
    const Layer layer = read_layer(r, size_);
    std::vector<int> src = sources(r);
    r.end();
    try {
      const int index = graph_.add(layer, name, std::move(src));
      by_name_[graph_.back().name] = index;
    } catch (const Error& error) {
      // An image too small for the network is not the file's mistake.
      const bool too_small =
          std::string_view(error.what()).find("--image-size") != std::string::npos;
      if (size_ && too_small) fail(error.code(), where_ + ": " + error.what());
      r.wrong(error.what());
    }
  }

  const Graph& graph() const { return graph_; }

 private:
  /// " (conv1)", where a layer says its name.
  static std::string named(const json& entry) {
    constexpr std::size_t kLong = 100;
    const bool has = entry.is_object() && entry.contains("name") && entry.at("name").is_string();
    if (!has) return "";
    const auto name = entry.at("name").get<std::string>();
    return name.size() > kLong ? "" : fmt::format(" ({})", printable(name));
  }

  std::vector<int> sources(const JsonFields& r) const {
    if (!r.has("from")) return {static_cast<int>(graph_.nodes().size()) - 1};
    const json& from = r.required("from");
    std::vector<int> src;
    if (!from.is_string() && !from.is_array()) r.wrong("from must name earlier layers");
    for (const json& name : from.is_string() ? json::array({from}) : from) {
      if (!name.is_string() || !by_name_.contains(name)) r.wrong("from must name earlier layers");
      src.push_back(by_name_.at(name));
    }
    if (src.empty()) r.wrong("from must name earlier layers");
    return src;
  }

  Graph graph_;
  const std::string& where_;
  const std::optional<ModelSize>& size_;
  std::map<std::string, int> by_name_{{"input", 0}};
};

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

ordered_json fields_of(const Layer& layer) {
  return std::visit(
      Overloaded{
          [](const Convolution& l) {
            ordered_json fields{{"filters", l.filters}};
            fields.update(window_fields("kernel", l.kernel, l.stride, l.padding));
            fields["bias"] = l.bias;
            if (l.groups != 1) fields["groups"] = l.groups;
            return with_rarities(fields, l.l2, l.init);
          },
          [](const ZeroPad& l) {
            return ordered_json{
                {"top", l.top}, {"bottom", l.bottom}, {"left", l.left}, {"right", l.right}};
          },
          [](const MaxPool& l) { return window_fields("size", l.size, l.stride, l.padding); },
          [](const AveragePool& l) { return window_fields("size", l.size, l.stride, l.padding); },
          [](const Dense& l) {
            return with_rarities({{"units", l.units}, {"bias", l.bias}}, l.l2, l.init);
          },
          [](const BatchNorm& l) {
            return ordered_json{{"epsilon", short_number(l.epsilon)},
                                {"momentum", short_number(l.momentum)}};
          },
          [](const Dropout& l) {
            return ordered_json{{"rate", short_number(l.rate)}};
          },
          [](const auto&) { return ordered_json::object(); },
      },
      layer);
}

}  // namespace

ordered_json layer_fields(const Graph& graph, int index) {
  const Graph::Node& node = graph.nodes()[index];
  ordered_json fields = fields_of(node.layer);
  if (index > 0 && node.src != std::vector<int>{index - 1}) {
    for (const int src : node.src) fields["from"].push_back(graph.nodes()[src].name);
  }
  return fields;
}

ordered_json to_json(const Graph& graph) {
  const auto nodes = graph.nodes();
  const auto& input = graph.input();
  ordered_json layers = ordered_json::array();
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    ordered_json layer{{"name", nodes[i].name}, {"type", type_name(nodes[i].layer)}};
    layer.update(layer_fields(graph, static_cast<int>(i)));
    layers.push_back(std::move(layer));
  }
  return {{"input",
           {{"height", graph.image().height},
            {"width", graph.image().width},
            {"channels", graph.image().channels},
            {"scale", per_colour_json(input.scale)},
            {"offset", per_colour_json(input.offset)}}},
          {"layers", std::move(layers)}};
}

JsonFields model_fields(const json& object, const std::string& where) {
  return {object, where,
          "(the model cannot be built); mend the file, or see `cputrain export --model-file` for "
          "one that is right",
          JsonFields::Null::wrong};
}

Graph graph_from_json(const json& model, const std::string& where,
                      const std::optional<ModelSize>& size) {
  const JsonFields top = model_fields(model, where);
  GraphReader reader(read_input(top, where, size), where, size);
  const json& layers = top.required("layers");
  if (!layers.is_array() || layers.empty() || layers.size() > kMaxLayers) {
    top.wrong(fmt::format("layers must be a list of 1 to {} layers", kMaxLayers));
  }
  double parameters = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    reader.add(layers[i], i + 1);
    check_numbers(reader.graph(), top, parameters);
  }
  check_shape(reader.graph(), top);
  return reader.graph();
}

}  // namespace cputrain::model
