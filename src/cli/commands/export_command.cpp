#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cli/commands.h"
#include "core/error.h"
#include "core/text.h"
#include "job/spec/build_graph.h"
#include "job/spec/training_spec.h"
#include "model/torch_layout.h"
#include "system/files.h"
#include "system/print.h"
#include "system/tell.h"
#include "train/safety/numbers.h"
#include "train/weights/weights.h"
#include "zoo/model_file.h"

namespace cputrain::cli {
namespace {

bool was_given(const Config& config, const std::string& flag) {
  return std::ranges::any_of(config.given, [&](const auto& g) { return g.first == flag; });
}

/// What the flags say of the model must be what the weights say of themselves.
void check_agrees(const Config& config, const train::ModelDescription& model) {
  const auto differs = [&](const std::string& flag, const std::string& theirs) {
    fail(ExitCode::usage, fmt::format("--{}: the weights in {} are of {} (the file would say one "
                                      "thing and hold another); leave the flag out",
                                      flag, config.weights, theirs));
  };
  const Shape image = model.graph.image();
  if (was_given(config, "model") && job::choose_training(config).model->name != model.model) {
    differs("model " + config.model, "the model " + model.model);
  }
  if (config.image_size && (*config.image_size != image.height || image.height != image.width)) {
    differs(fmt::format("image-size {}", *config.image_size),
            fmt::format("{}x{} pixels", image.height, image.width));
  }
  if (config.classes && static_cast<std::size_t>(*config.classes) != model.classes.size()) {
    differs(fmt::format("classes {}", *config.classes),
            fmt::format("{} classes", model.classes.size()));
  }
}

void write_onnx(const Config& config, const job::Services& services,
                const model::ExportedModel& model) {
  const auto file = system::open_given_file(config.onnx);
  services.write_onnx(model, *file);
  file->commit(system::Durability::disk);
  const Shape image = model.graph.image();
  system::print(
      "{}: ONNX, {} parameters; `image` is float32 [N, {}, {}, 3], RGB from 0 to 255; "
      "`probabilities` [N, {}]\n",
      config.onnx, with_commas(model.graph.parameter_count()), image.height, image.width,
      model.graph.back().dst.channels);
}

void write_safetensors(const Config& config, const train::ModelDescription& description,
                       const model::ExportedModel& model) {
  const bool torch = config.export_layout == "torch";
  model::safetensors::Metadata metadata = train::weights_metadata(description);
  std::vector<model::safetensors::OutTensor> tensors;
  if (torch) {
    metadata["format"] = "pt";  // what loaders of PyTorch's files look for
    metadata["layout"] = "torch";
    tensors = model::torch_tensors(model);
  } else {
    for (const auto& node : model.graph.nodes()) {
      for (const auto& spec : node.parameters) {
        tensors.push_back({spec.name, {spec.extents.begin(), spec.extents.end()}, [&spec, &model] {
                             return model.values(spec.name);
                           }});
      }
    }
  }
  const std::size_t count = tensors.size();
  const auto file = system::open_given_file(config.safetensors);
  model::safetensors::write(*file, metadata, std::move(tensors));
  file->commit(system::Durability::disk);
  system::print("{}: {} tensors in the layout of {}\n", config.safetensors, count,
                torch ? "PyTorch" : "Keras");
}

void write_model_file(const Config& config, const zoo::ModelEntry& model, Shape image,
                      int classes) {
  system::write_given_file(config.model_file, zoo::model_file_text(model, image, classes));
  system::print("{}: model {}, to be changed and used as --model {}\n", config.model_file,
                model.name, config.model_file);
}

/// The network of a weight file as a model of its own: what it was trained with is not known.
zoo::ModelEntry entry_of(const train::ModelDescription& description) {
  const int classes = static_cast<int>(description.classes.size());
  return {.name = description.model,
          .spec = description.model,
          .aliases = {},
          .description = "the network of a weight file",
          .recipe = {.image_size = description.graph.image().height,
                     .classes = classes,
                     .batch = 128,
                     .epochs = 10,
                     .rule = optim::Sgd{},
                     .learning_rate = optim::default_learning_rate(optim::Sgd{}),
                     .source = "weight file"},
          .build = [graph = description.graph](Shape, int) { return graph; }};
}

/// Notes the names of arrays that hold NaN or infinity as they are read.
model::WeightValues watched(model::WeightValues values, std::set<std::string>& no_numbers) {
  return [values = std::move(values), &no_numbers](const std::string& parameter) {
    std::vector<float> numbers = values(parameter);
    if (!train::all_numbers(numbers)) no_numbers.insert(parameter);
    return numbers;
  };
}

/// They are written all the same: who looks for what went wrong may want to see them elsewhere.
void warn_of_no_numbers(const Config& config, const model::Graph& graph,
                        const std::set<std::string>& no_numbers) {
  std::size_t arrays = 0;
  for (const auto& node : graph.nodes()) arrays += node.parameters.size();
  const std::string text =
      train::no_numbers_text(config.weights, {no_numbers.begin(), no_numbers.end()}, arrays);
  if (text.empty()) return;
  system::tell(
      fmt::format("warning: {} (what was exported answers nothing; export weights of a training "
                  "whose loss was a number)",
                  text));
}

void export_weights(const Config& config, const job::Services& services) {
  const train::ModelDescription description = train::read_description(config.weights);
  check_agrees(config, description);
  std::set<std::string> no_numbers;
  const model::ExportedModel model{
      description.model,
      description.classes,
      std::string(data::resize_name(description.resize)),
      std::string(data::exif_name(description.exif)),
      description.graph,
      watched(train::open_weights(config.weights, description.graph), no_numbers)};
  if (!config.onnx.empty()) write_onnx(config, services, model);
  if (!config.safetensors.empty()) write_safetensors(config, description, model);
  warn_of_no_numbers(config, description.graph, no_numbers);
  if (config.model_file.empty()) return;
  write_model_file(config, entry_of(description), description.graph.image(),
                   static_cast<int>(description.classes.size()));
}

void export_model(const Config& config) {
  const job::TrainingSpec spec = job::choose_training(config);
  const zoo::ModelEntry& model = *spec.model;
  write_model_file(config, model, spec.image, config.classes.value_or(model.recipe.classes));
}

}  // namespace

int run_export(const Config& config, const job::Services& services) {
  const auto communicator = services.make_communicator(config.stalls.start);
  if (communicator->rank() == 0) {
    config.weights.empty() ? export_model(config) : export_weights(config, services);
  }
  communicator->barrier();
  return static_cast<int>(ExitCode::ok);
}

}  // namespace cputrain::cli
