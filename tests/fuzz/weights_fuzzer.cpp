#include <cstring>
#include <nlohmann/json.hpp>

#include "model/model_json.h"
#include "tests/fuzz/fuzzer.h"
#include "weights/description.h"
#include "weights/safetensors.h"

namespace cputrain::testing::weights_fuzzer {
namespace {

namespace safetensors = weights::safetensors;

constexpr std::size_t kPrefix = sizeof(std::uint64_t);  // the header's length

void look_at(const weights::TensorFile& file) {
  std::size_t bytes = 0;
  for (const auto& tensor : file.tensors()) {
    promise(tensor.begin == bytes, "the buffer has no holes");
    bytes = tensor.end;
    promise(file.find(tensor.name) == &tensor, "tensors are found by their names");
    is_taken([&] { promise(file.read(tensor).size() == tensor.count(), "all numbers are read"); });
    is_taken([&] { file.read_floats(tensor); });
  }
}

bool read(const std::string& bytes) {
  const auto path = own_file("w.safetensors", bytes);
  return is_taken([&] {
    const weights::TensorFile file = safetensors::open(path);
    look_at(file);
    weights::kernels_of(file);
    is_taken([&] { weights::classes_of_weights(file); });
    is_taken([&] { weights::past_training(file); });
    is_taken([&] { weights::weights_metadata(weights::read_description(path)); });
  });
}

/// The header's length as it should be, where the last brace ends it: no mutation would hit that.
std::string with_right_length(std::string bytes) {
  const std::size_t brace = bytes.rfind('}');
  if (brace == std::string::npos || brace < kPrefix) return bytes;
  const std::size_t end = std::min(bytes.find_first_not_of(' ', brace + 1), bytes.size());
  const std::uint64_t length = end - kPrefix;
  std::memcpy(bytes.data(), &length, kPrefix);
  return bytes;
}

std::string file_of(const safetensors::Metadata& metadata) {
  const auto path = own_folder() / "seed.safetensors";
  safetensors::write(path, metadata,
                     {{"dense/kernel", {3, 2}, [] { return std::vector<float>(6, 0.5f); }},
                      {"dense/bias",
                       {2},
                       {},
                       [] {
                         return std::vector{1.0, -2.0};
                       }},
                      {"none", {0, 7}, [] { return std::vector<float>(); }}});
  return text_of(path);
}

weights::ModelDescription description() {
  const auto json = nlohmann::json::parse(
      R"({"input": {"height": 1, "width": 1, "channels": 3},
          "layers": [{"type": "flatten"}, {"type": "dense", "units": 2}, {"type": "softmax"}]})");
  weights::ModelDescription described{
      "small", {"cat", "dog"}, model::graph_from_json(json, "seed"), 7, 0.125};
  described.kernels = "avx2";
  described.data = {.fingerprint = 1, .place = 2, .earlier = {3, 4}};
  return described;
}

std::vector<std::string> seeds() {
  return {file_of({}), file_of({{"format", "pt"}}),
          file_of(weights::weights_metadata(description()))};
}

bool takes(const std::string& text) {
  const bool taken = read(text);
  if (!taken) read(with_right_length(text));
  return taken;
}

const Fuzzer kFuzzer{"weights", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::weights_fuzzer
