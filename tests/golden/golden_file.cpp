#include "golden/golden_file.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "model/zoo.h"

namespace cputrain::golden {
namespace {

using Json = nlohmann::json;

std::vector<Digest> digests(const Json& rows) {
  std::vector<Digest> result;
  for (const auto& row : rows) {
    result.push_back(
        {row.at("name"), row.at("norm"), row.at("dot"), row.at("at"), row.at("values")});
  }
  return result;
}

UpdateRule rule_of(const Json& run) {
  const std::string name = run.at("rule");
  if (name == "sgd") return Sgd{.momentum = run.at("momentum"), .nesterov = run.at("nesterov")};
  if (name == "rmsprop") {
    return RmsProp{.momentum = run.at("momentum"), .centered = run.at("centered")};
  }
  return Adam{};
}

/// The same network with dropout rates of 0; names, order and so the initial weights stay.
Graph without_dropout(const Graph& graph) {
  Graph copy(graph.image(), std::get<Input>(graph.nodes()[0].layer));
  for (const auto& node : graph.nodes().subspan(1)) {
    const bool dropout = std::holds_alternative<Dropout>(node.layer);
    copy.add(dropout ? Layer{Dropout{0.0f}} : node.layer, node.name, node.src);
  }
  return copy;
}

/// Every kind of layer, `same` padding with odd amounts, strides: layers_net() of make_golden.py.
Graph layers_net(Shape image, int classes) {
  Graph graph(image);
  graph.add(Convolution{.filters = 8, .kernel = 3, .padding = Padding::same});
  graph.add(Relu{});
  graph.add(AveragePool{});
  graph.add(Convolution{.filters = 12, .kernel = 5, .stride = 2, .padding = Padding::same});
  graph.add(Relu{});
  graph.add(MaxPool{.size = 3, .stride = 2, .padding = Padding::same});
  graph.add(Convolution{.filters = 10, .kernel = 3});
  graph.add(Relu{});
  graph.add(AveragePool{.size = 3, .stride = 2, .padding = Padding::same});
  graph.add(GlobalAveragePool{});
  graph.add(Dense{7});
  graph.add(Relu{});
  graph.add(Dense{classes});
  graph.add(SoftmaxCrossEntropy{});
  return graph;
}

std::uint32_t word(const RandomStream& stream, std::size_t i) {
  return stream.at(static_cast<std::uint32_t>(i / 4))[i % 4];
}

/// Patches of 8 x 8 pixels of one colour each under a quarter of noise: pictures() of
/// make_golden.py.
std::vector<std::uint8_t> picture(Shape image, std::uint64_t seed, std::uint32_t index) {
  const RandomStream colours(seed, Purpose::noise, index), noise(seed, Purpose::pixels, index);
  const std::size_t columns = (static_cast<std::size_t>(image.width) + 7) / 8;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      for (int c = 0; c < image.channels; ++c) {
        const std::size_t patch = (y / 8 * columns + x / 8) * image.channels + c;
        const std::uint32_t colour = word(colours, patch) & 255;
        pixels.push_back(
            static_cast<std::uint8_t>((3 * colour + (word(noise, pixels.size()) & 255)) / 4));
      }
    }
  }
  return pixels;
}

}  // namespace

File load(const std::string& name) {
  std::ifstream stream(CPUTRAIN_GOLDEN_DIR "/" + name + ".json");
  const Json json = Json::parse(stream);
  const auto& size = json.at("image");
  const Shape image{size[0], size[1], size[2]};
  const int classes = json.at("classes");
  File file{.graph = name == "dogcat" ? without_dropout(find_model(name)->build(image, classes))
                                      : layers_net(image, classes),
            .classes = classes,
            .batch = json.at("batch"),
            .seed = json.at("seed"),
            .start = digests(json.at("start")),
            .first = digests(json.at("first")),
            .trainings = {},
            .float_batch = json.at("float_errors").at("batch"),
            .float_errors = {}};
  for (const auto& run : json.at("runs")) {
    file.trainings.push_back({run.at("name"), rule_of(run), run.at("rate"), run.at("losses"),
                              run.at("correct"), digests(run.at("last")),
                              digests(run.at("weights"))});
  }
  for (const auto& batch : json.at("float_errors").at("batches")) {
    file.float_errors.push_back(batch.at("tensors"));
  }
  return file;
}

Digest digest(const Digest& like, const std::vector<double>& tensor, std::uint64_t seed,
              int index) {
  const RandomStream noise(seed, Purpose::noise, static_cast<std::uint32_t>(index));
  Digest result{like.name, 0, 0, like.at, {}};
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    result.norm += tensor[i] * tensor[i];
    result.dot += tensor[i] * (static_cast<double>(unit_float(word(noise, i))) - 0.5);
  }
  result.norm = std::sqrt(result.norm);
  for (const std::size_t i : like.at) result.values.push_back(tensor.at(i));
  return result;
}

Pictures::Pictures(const File& file, int first, int count) {
  for (int i = first; i < first + count; ++i) {
    pixels_.push_back(picture(file.graph.image(), file.seed, static_cast<std::uint32_t>(i)));
    pointers_.push_back(pixels_.back().data());
    labels_.push_back(i % file.classes);
    samples_.push_back(static_cast<std::uint32_t>(i));
  }
}

MicroBatch Pictures::piece(int begin, int end) const {
  const auto part = [&](const auto& all) {
    return std::span(all).subspan(static_cast<std::size_t>(begin),
                                  static_cast<std::size_t>(end - begin));
  };
  return {part(pointers_), part(labels_), part(samples_)};
}

}  // namespace cputrain::golden
