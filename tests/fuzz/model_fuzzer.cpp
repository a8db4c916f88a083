#include "model/layer_patterns.h"
#include "model/rewrite.h"
#include "model/summary.h"
#include "tests/fuzz/fuzzer.h"
#include "zoo/model_file.h"

namespace cputrain::testing::model_fuzzer {
namespace {

std::string again(const zoo::ModelEntry& entry) {
  const int side = entry.recipe.image_size;
  return zoo::model_file_text(entry, {side, side, 3}, entry.recipe.classes);
}

/// What programs ask of a graph before they compute anything.
void look_at(const model::Graph& graph) {
  model::summary_text(graph);
  model::class_outputs(graph);
  model::least_bytes(model::pool_before_relu(graph), sizeof(float));
  promise(graph.training_flops() >= 0, "work is counted");
  promise(graph.learnt_count() <= graph.parameter_count(), "parameters are counted");
}

/// Small networks with every type of layer, and one of the zoo.
std::vector<std::string> seeds() {
  std::vector<std::string> seeds{
      R"({"format": "cputrain model 1", "name": "small", "recipe": {"image_size": 8},
          "input": {"scale": 0.5, "offset": -1},
          "layers": [{"type": "zero_pad", "top": 1, "left": 1},
                     {"name": "c", "type": "convolution", "filters": 4, "kernel": 3, "stride": 2},
                     {"type": "batch_norm", "momentum": 0.5, "epsilon": 0.25},
                     {"name": "r", "type": "relu"},
                     {"name": "d", "type": "convolution", "filters": 4, "kernel": 1},
                     {"type": "add", "from": ["r", "d"]},
                     {"type": "max_pool", "size": 2}, {"type": "dropout", "rate": 0.5},
                     {"type": "flatten"}, {"type": "dense", "units": "classes"},
                     {"type": "softmax"}]})",
      R"({"format": "cputrain model 1", "recipe": {"image_size": 4, "classes": 2, "batch": 8,
          "epochs": 2, "optimizer": "adam", "learning_rate": 0.1, "schedule": "cosine",
          "augment": "flip,crop:4"}, "layers": [{"type": "global_average_pool"},
          {"type": "dense", "units": 1}, {"type": "sigmoid"}]})"};
  seeds.push_back(again(*zoo::find_model("dogcat")));
  return seeds;
}

bool takes(const std::string& text) {
  const auto path = own_file("model.json", text);
  return is_taken([&] {
    const zoo::ModelEntry entry = zoo::read_model_file(path);
    const int side = entry.recipe.image_size;
    look_at(entry.build({side, side, 3}, entry.recipe.classes));
    is_taken([&] { look_at(entry.build({7, 9, 3}, 3)); }, ExitCode::usage);
    const std::string written = again(entry);
    promise(again(zoo::read_model_file(own_file("again.json", written))) == written,
            "a model that is written is read again");
  });
}

const Fuzzer kFuzzer{"model", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::model_fuzzer
