#include "backends/hdf5/zip_archive.h"
#include "tests/fuzz/fuzzer.h"
#include "weights/keras_arrays.h"
#include "weights/keras_network.h"

namespace cputrain::testing {
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

bool read_archive(std::string bytes) {
  const auto archive = std::as_writable_bytes(std::span(bytes));
  bool found = false;
  const bool read = is_read([&] {
    for (const char* name : {"config.json", "model.weights.h5"}) {
      const auto member = hdf5::stored_member(archive, name);
      if (!member) continue;
      found = true;
      promise(member->data() >= archive.data() &&
                  member->data() + member->size() <= archive.data() + archive.size(),
              "a file of the archive lies in it");
    }
  });
  return read && found;
}

bool read_layers(const std::string& bytes) {
  const auto path = own_file("k.safetensors", bytes);
  return is_read([&] {
    const weights::safetensors::File file(path);
    const weights::WeightArrays arrays =
        weights::keras_arrays({"k.keras", file, weights::keras_texts(file.metadata())}, network());
    for (const auto& array : arrays.arrays()) {
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

/// An archive of one file of four bytes.
std::string archive() {
  using namespace std::string_literals;
  const std::string name = "config.json";
  const std::string checksum = "\x4f\xfc\xcb\x25", sizes = "\4\0\0\0\4\0\0\0\x0b\0\0\0"s;
  const std::string common = std::string(8, '\0') + checksum + sizes;
  const std::string local = "PK\3\4\x14\0"s + common + name + "null";
  const std::string entry = "PK\1\2\x14\0\x14\0"s + common + std::string(14, '\0') + name;
  return local + entry + "PK\5\6"s + std::string(4, '\0') + "\1\0\1\0"s +
         static_cast<char>(entry.size()) + std::string(3, '\0') + static_cast<char>(local.size()) +
         std::string(5, '\0');
}

}  // namespace

std::vector<std::string> fuzzer_seeds() {
  return {numbered_layers(), listed_layers(), kConfig, archive()};
}

bool fuzzer_takes(const std::string& text) {
  if (text.starts_with("PK")) return read_archive(text);
  if (text.starts_with("{")) return is_read([&] { weights::read_keras_network(text); });
  return read_layers(text);
}

}  // namespace cputrain::testing
