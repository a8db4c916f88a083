#include <algorithm>

#include "system/zip_archive.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/support/made_zip.h"
#include "weights/keras_arrays.h"
#include "weights/keras_network.h"

namespace cputrain::testing::keras_fuzzer {
namespace {

using weights::safetensors::OutTensor;

/// Whether nothing is refused, be it by an Error of its kind or by what becomes one.
template <class Read>
bool is_read(const Read& read) {
  try {
    return is_taken(read);
  } catch (const std::runtime_error& error) {
    promise(*error.what() != '\0', "a refusal says why");
    return false;
  }
}

model::Graph network() {
  model::Graph graph({5, 5, 3});
  graph.add(model::Convolution{.filters = 4, .kernel = 3}, "stem");
  graph.add(model::BatchNorm{}, "norm");
  graph.add(model::Convolution{.filters = 4, .kernel = 3, .groups = 4}, "deep");
  graph.add(model::Flatten{});
  graph.add(model::Dense{2}, "head");
  graph.add(model::SoftmaxCrossEntropy{});
  return graph;
}

bool read_archive(const std::string& bytes) {
  const auto archive = std::as_bytes(std::span(bytes));
  bool found = false;
  const bool read = is_read([&] {
    system::ZipFiles files(archive.size(), [&](std::uint64_t offset, std::span<std::byte> dst) {
      promise(offset <= archive.size() && dst.size() <= archive.size() - offset,
              "no byte is asked for beyond the archive's end");
      std::ranges::copy(archive.subspan(offset, dst.size()), dst.begin());
    });
    for (const std::string& name : files.names()) {
      const auto place = files.stored(name);
      found = true;
      promise(place->begin <= archive.size() && place->size <= archive.size() - place->begin,
              "a file of the archive lies in it");
    }
  });
  return read && found;
}

bool read_layers(const std::string& bytes) {
  const auto path = own_file("k.safetensors", bytes);
  return is_read([&] {
    const weights::TensorFile file = weights::safetensors::open(path);
    const weights::WeightArrays arrays =
        weights::keras_arrays({"k.keras", file, weights::keras_texts(file.metadata())}, network());
    for (const auto& array : arrays.arrays) {
      if (array.floats) is_read([&] { array.floats(); });
    }
  });
}

OutTensor ones(const std::string& name, const std::vector<std::size_t>& extents) {
  std::size_t count = 1;
  for (const std::size_t extent : extents) count *= extent;
  return {name, extents, [count] { return std::vector<float>(count, 1); }};
}

std::string file_with(const weights::KerasTexts& texts, const std::vector<OutTensor>& tensors) {
  const auto path = own_folder() / "seed.safetensors";
  weights::safetensors::write(path, weights::to_metadata(texts), tensors);
  return text_of(path);
}

constexpr const char* kConfig =
    R"({"class_name": "Functional", "config": {"name": "n", "layers": [
      {"class_name": "Conv2D", "config": {"name": "stem"}},
      {"class_name": "Sequential", "config": {"layers": [
        {"class_name": "BatchNormalization", "config": {"name": "norm", "scale": false}},
        {"class_name": "DepthwiseConv2D", "config": {"name": "deep"}}]}},
      {"class_name": "Dense", "config": {"name": "head"}}]}})";

std::string numbered_layers() {
  weights::KerasTexts texts;
  texts.config = kConfig;
  texts.attributes["layers/conv2d/vars"]["name"] = {"stem"};
  texts.unread = {"optimizer/vars/0"};
  const std::string within = "layers/sequential/layers/";
  return file_with(
      texts, {ones("layers/conv2d/vars/0", {3, 3, 3, 4}), ones("layers/conv2d/vars/1", {4}),
              ones(within + "batch_normalization/vars/0", {4}),
              ones(within + "batch_normalization/vars/1", {4}),
              ones(within + "batch_normalization/vars/2", {4}),
              ones(within + "depthwise_conv2d/vars/0", {3, 3, 4, 1}),
              ones(within + "depthwise_conv2d/vars/1", {4}), ones("layers/dense/vars/0", {4, 2}),
              ones("layers/dense/vars/1", {2})});
}

std::string listed_layers() {
  weights::KerasTexts texts;
  texts.attributes[""]["layer_names0"] = {"stem"};
  texts.attributes[""]["layer_names1"] = {"inner"};
  texts.attributes["stem"]["weight_names"] = {"stem/kernel:0", "stem/bias:0"};
  texts.attributes["inner"]["weight_names"] = {"norm/gamma:0", "norm/moving_variance:0", "x/mean"};
  return file_with(texts, {ones("stem/stem/kernel:0", {3, 3, 3, 4}), ones("stem/stem/bias:0", {4}),
                           ones("inner/norm/gamma:0", {4}),
                           ones("inner/norm/moving_variance:0", {4}), ones("inner/x/mean", {3})});
}

std::vector<std::string> seeds() {
  return {numbered_layers(), listed_layers(), kConfig, made_zip({{"config.json", "null"}})};
}

bool takes(const std::string& text) {
  if (text.starts_with("PK")) return read_archive(text);
  if (text.starts_with("{")) return is_read([&] { weights::read_keras_network(text); });
  return read_layers(text);
}

const Fuzzer kFuzzer{"keras", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::keras_fuzzer
