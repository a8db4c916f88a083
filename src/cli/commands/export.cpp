#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/commands/inputs.h"
#include "cli/flags/flag_groups.h"
#include "compute/memory.h"
#include "core/text.h"
#include "data/classes/class_names.h"
#include "model/normalization.h"
#include "system/files.h"
#include "system/print.h"
#include "training/request/choose_training.h"
#include "weights/description.h"
#include "weights/keras_network.h"
#include "weights/load.h"
#include "weights/torch_arrays.h"
#include "weights/weight_file.h"
#include "zoo/model_file.h"

namespace cputrain::commands {
namespace {

struct ExportOptions : cli::Options {
  std::string onnx, safetensors, model_file, layout = "keras";
  std::vector<std::string> class_names;  ///< by output; empty: as the weights have them
  bool resizes_inside = false;
};

/// What the flags say of the model must be what the weights say of themselves.
void check_agrees(const ExportOptions& options, const weights::ModelDescription& model) {
  const auto differs = [&](const std::string& flag, const std::string& theirs) {
    fail(ExitCode::usage,
         "--{}: the weights in {} are of {} (the file would say one thing and hold another); leave "
         "the flag out",
         flag, options.weights, theirs);
  };
  if (options.normalize) {
    differs("normalize", "pixels as " + model::normalization_text(model.graph.input()));
  }
  const Shape image = model.graph.image();
  if (options.was_given("model") && training::choose_training(options).model->name != model.model) {
    differs("model " + options.model, "the model " + model.model);
  }
  if (options.image_size && (*options.image_size != image.height || image.height != image.width)) {
    differs(fmt::format("image-size {}", *options.image_size),
            fmt::format("{}x{} pixels", image.height, image.width));
  }
  if (options.classes && static_cast<std::size_t>(*options.classes) != model.classes.size()) {
    differs(fmt::format("classes {}", *options.classes),
            fmt::format("{} classes", model.classes.size()));
  }
}

void write_onnx(const ExportOptions& options, const training::Services& services,
                const model::ExportedModel& model) {
  const auto file = system::open_given_file(options.onnx);
  services.write_onnx(model, *file);
  file->commit(system::Durability::disk);
  const Shape image = model.graph.image();
  const std::string input =
      options.resizes_inside
          ? fmt::format("uint8 [N, height, width, 3] of any size, RGB, {} inside",
                        model.images.in_words)
          : fmt::format("float32 [N, {}, {}, 3], RGB from 0 to 255", image.height, image.width);
  system::print("{}: ONNX, {} parameters; `image` is {}; `probabilities` [N, {}]\n", options.onnx,
                with_commas(model.graph.parameter_count()), input, model.graph.back().dst.channels);
}

void write_safetensors(const ExportOptions& options, const weights::ModelDescription& description,
                       const model::ExportedModel& model) {
  const bool torch = options.layout == "torch";
  weights::safetensors::Metadata metadata = weights::weights_metadata(description);
  std::vector<weights::safetensors::OutTensor> tensors;
  if (torch) {
    weights::mark_as_torch(metadata);
    tensors = weights::torch_tensors(model);
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
  const auto file = system::open_given_file(options.safetensors);
  weights::safetensors::write(*file, metadata, std::move(tensors));
  file->commit(system::Durability::disk);
  system::print("{}: {} in the layout of {}\n", options.safetensors, counted(count, "tensor"),
                torch ? "PyTorch" : "Keras");
}

void write_model_file(const ExportOptions& options, const zoo::ModelEntry& model, Shape image,
                      int classes) {
  system::write_given_file(options.model_file, zoo::model_file_text(model, image, classes));
  system::print("{}: model {}, to be changed and used as --model {}\n", options.model_file,
                model.name, options.model_file);
}

/// The network of a weight file as a model of its own: of what it was trained with, only how images
/// were resized is known.
zoo::ModelEntry entry_of(const weights::ModelDescription& description) {
  const int classes = static_cast<int>(description.classes.size());
  return {.name = description.model,
          .description = "the network of a weight file",
          .recipe = {.image_size = description.graph.image().height,
                     .classes = classes,
                     .batch = 128,
                     .epochs = 10,
                     .rule = optim::Sgd{},
                     .learning_rate = optim::default_learning_rate(optim::Sgd{}),
                     .resize = description.resize,
                     .source = "weight file"},
          .build = [graph = description.graph](Shape, int) { return graph; }};
}

/// Notes the names of arrays that hold NaN or infinity as they are read.
model::WeightValues watched(model::WeightValues values, std::set<std::string>& no_numbers) {
  return [values = std::move(values), &no_numbers](const std::string& parameter) {
    std::vector<float> numbers = values(parameter);
    if (!compute::all_numbers(numbers)) no_numbers.insert(parameter);
    return numbers;
  };
}

/// What other programs call the layers, where --model says the network.
std::vector<weights::ModuleNames> names_of_others(const ExportOptions& options) {
  if (!options.was_given("model")) return {};
  return zoo::find_model(options.model)->modules;
}

/// They are written all the same: who looks for what went wrong may want to see them elsewhere.
void warn_of_no_numbers(const ExportOptions& options, const model::Graph& graph,
                        const std::set<std::string>& no_numbers) {
  std::size_t arrays = 0;
  for (const auto& node : graph.nodes()) arrays += node.parameters.size();
  const std::string text =
      weights::nonfinite_text(options.weights, {no_numbers.begin(), no_numbers.end()}, arrays);
  if (text.empty()) return;
  system::tell(
      "warning: {} (its predictions mean nothing; export weights of a training whose loss was a "
      "number)",
      text);
}

constexpr std::size_t kMostOutputs = 65536;

/// Outputs that the file has numbers for; those of the recipe where it has none.
int outputs_in(const weights::WeightArrays& file, const model::Graph& graph) {
  for (const std::string& name : model::class_outputs(graph).arrays) {
    const weights::StoredArray* array = file.find(name);
    if (!array || array->extents.empty()) continue;
    if (array->extents.back() > kMostOutputs) {
      fail(ExitCode::data,
           "weight file {}: {} has {} outputs, more than the {} that are known (it is of no "
           "classifier, or damaged); check --weights and --model",
           printable(file.path.string()), printable(name), array->extents.back(), kMostOutputs);
    }
    return static_cast<int>(array->extents.back());
  }
  return graph.back().dst.channels;
}

/// "224x192".
std::string size_text(Shape image) { return fmt::format("{}x{}", image.height, image.width); }

/// Images as Keras' file says them, where no flag does. Networks here take square ones.
training::TrainingSpec spec_for(const ExportOptions& options,
                                const weights::ReadKeras& read_keras) {
  training::TrainingFlags flags = options;
  std::optional<Shape> theirs;
  if (weights::is_of_keras(options.weights)) {
    const auto network = weights::network_said_by(read_keras(options.weights).texts.config);
    if (network) theirs = network->image;
  }
  const bool takes = theirs && theirs->height == theirs->width && !flags.image_size;
  if (takes) flags.image_size = theirs->height;
  const training::TrainingSpec spec = training::choose_training(flags);
  if (!theirs || (*theirs == spec.image && !takes)) return spec;
  system::tell("--weights {}: its network takes images of {}, {} (--image-size)", options.weights,
               size_text(*theirs),
               takes ? "and so does the one that is written"
                     : "the one that is written those of " + size_text(spec.image));
  return spec;
}

/// A file of Keras without a configuration (.weights.h5) may hide a layer that changes pixels.
void say_pixels(const ExportOptions& options, const model::Graph& graph,
                const weights::WeightArrays& file) {
  if (!weights::is_of_keras(options.weights) || file.says_layers) return;
  const auto& input = graph.input();
  system::tell(
      "--weights {} does not say how pixels become numbers; here they do as {} (--normalize must "
      "say what they were when it learnt)",
      options.weights, model::normalization_text(input));
}

/// A file that says nothing about its network, which --model then does. Its classes have no names,
/// unless --class-names gives them some.
weights::ModelDescription described_by_flags(const ExportOptions& options,
                                             const weights::ReadKeras& read_keras) {
  const training::TrainingSpec spec = spec_for(options, read_keras);
  const model::Graph any = spec.model->build(spec.image, spec.model->recipe.classes);
  const weights::WeightArrays file =
      weights::open_arrays(options.weights, any, spec.model->modules, read_keras);
  const int outputs = outputs_in(file, any);
  weights::ModelDescription description{.model = spec.model->name,
                                        .classes = {},
                                        .graph = training::build_graph(spec, std::max(outputs, 2))};
  say_pixels(options, description.graph, file);
  for (int label = 0; label < std::max(outputs, 2); ++label) {
    description.classes.push_back(
        data::name_of_nameless(description.classes, static_cast<std::size_t>(label)));
  }
  description.resize = spec.resize;
  description.exif = options.exif_choice();
  return description;
}

weights::ModelDescription description_of(const ExportOptions& options,
                                         const weights::ReadKeras& read_keras) {
  if (!weights::describes_itself(options.weights) && options.was_given("model")) {
    return described_by_flags(options, read_keras);
  }
  weights::ModelDescription description = weights::read_description(options.weights);
  check_agrees(options, description);
  return description;
}

/// Error(usage) where there are not as many names as the weights have classes.
void check_count_of_names(const std::vector<std::string>& names, const std::string& weights,
                          std::size_t classes) {
  if (names.size() == classes) return;
  fail(ExitCode::usage,
       "--class-names: {} for the {} classes of {} (each needs its own); write them in the order "
       "of the outputs",
       with_commas(names.size(), "name"), with_commas(classes), printable(weights));
}

/// With the names that were asked for.
weights::ModelDescription named_description(const ExportOptions& options,
                                            const weights::ReadKeras& read_keras) {
  weights::ModelDescription description = description_of(options, read_keras);
  if (options.class_names.empty()) return description;
  check_count_of_names(options.class_names, options.weights, description.classes.size());
  description.classes = options.class_names;
  return description;
}

void export_weights(const ExportOptions& options, const training::Services& services) {
  const weights::ModelDescription description = named_description(options, services.read_keras);
  const weights::WeightArrays file = weights::open_arrays(
      options.weights, description.graph, names_of_others(options), services.read_keras);
  if (!file.caveat.empty()) {
    system::tell("warning: --weights {}: {}", options.weights, file.caveat);
  }
  std::set<std::string> no_numbers;
  const model::ExportedModel model{
      description.model,
      description.classes,
      {.resize = std::string(word_of(description.resize.way)),
       .fit = to_text(description.resize.fit),
       .part = static_cast<double>(description.resize.fit.part) / data::Fit::kWhole,
       .in_words = in_words(description.resize, description.graph.image()),
       .exif = std::string(word_of(description.exif)),
       .resized_inside = options.resizes_inside},
      description.graph,
      watched(weights::open_weights(file, description.graph), no_numbers)};
  if (!options.onnx.empty()) write_onnx(options, services, model);
  if (!options.safetensors.empty()) write_safetensors(options, description, model);
  warn_of_no_numbers(options, description.graph, no_numbers);
  if (options.model_file.empty()) return;
  write_model_file(options, entry_of(description), description.graph.image(),
                   static_cast<int>(description.classes.size()));
}

void export_model(const ExportOptions& options) {
  const training::TrainingSpec spec = training::choose_training(options);
  const zoo::ModelEntry& model = *spec.model;
  write_model_file(options, model, spec.image, options.classes.value_or(model.recipe.classes));
}

void add_export_flags(cli::Flags& f, ExportOptions& c, const cli::CommandLineChoices&) {
  add_network_flags(f, c);
  add_row(f, c, "normalize");
  add_weights_flag(f, c);
  f.group("Output");
  f.text("onnx", c.onnx, "FILE", "write network and weights as ONNX (opset 13)");
  f.choice("onnx-resize", {"caller", "in-graph"},
           "who brings images to the network's size: whoever calls it, or the graph of --onnx, "
           "which then takes bytes of any size [caller]",
           [&c](const std::string& word) { c.resizes_inside = word == "in-graph"; });
  f.text("safetensors", c.safetensors, "FILE", "write the weights as safetensors");
  f.choice("export-layout", {"keras", "torch"},
           "names and layout of --safetensors: those of Keras or of a PyTorch state_dict [keras]",
           [&c](const std::string& name) { c.layout = name; });
  f.parsed("class-names", "A,B,...|FILE",
           "names of the classes in the order of the outputs, or a file with a name a line "
           "[those of the weights, else class 0, class 1, ...]",
           [&c](const std::string& text) { c.class_names = parse_names_of_classes(text); });
  f.text("model-file", c.model_file, "FILE",
         "write the model of --weights or --model as JSON, to be changed and used as --model "
         "FILE");
}

void check_export(const ExportOptions& options, const cli::CommandLineChoices&) {
  if (options.onnx.empty() && options.safetensors.empty() && options.model_file.empty()) {
    fail(ExitCode::usage, "export needs --onnx FILE, --safetensors FILE or --model-file FILE");
  }
  if (options.weights.empty() && !(options.onnx.empty() && options.safetensors.empty())) {
    fail(ExitCode::usage, "--{} needs --weights FILE, a weights.safetensors that training wrote",
         options.onnx.empty() ? "safetensors" : "onnx");
  }
  check_ending("onnx", options.onnx, ".onnx");
  check_ending("safetensors", options.safetensors, ".safetensors");
  check_ending("model-file", options.model_file, ".json");
  if (!options.class_names.empty() && options.onnx.empty() && options.safetensors.empty()) {
    fail(ExitCode::usage,
         "--class-names needs --onnx FILE or --safetensors FILE (a model file has no names)");
  }
  if (options.resizes_inside && options.onnx.empty()) {
    fail(ExitCode::usage, "--onnx-resize in-graph needs --onnx FILE");
  }
  if (options.layout != "keras" && options.safetensors.empty()) {
    fail(ExitCode::usage, "--export-layout " + options.layout + " needs --safetensors FILE");
  }
}

ExitCode run_export(const ExportOptions& options, const training::Services& services) {
  const auto communicator = services.make_communicator(options.stalls.start);
  if (communicator->rank() == 0) {
    options.weights.empty() ? export_model(options) : export_weights(options, services);
  }
  communicator->barrier();
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_export() {
  return cli::make_command<ExportOptions>(
      {.help = {.name = "export",
                .summary = "saved weights as ONNX or safetensors, a model as a file to change",
                .about =
                    "Writes saved weights for other programs, or a model as a file that can be "
                    "changed.",
                .examples =
                    {{"cputrain export --weights runs/first/weights.safetensors --onnx model.onnx",
                      "Writes network and weights as ONNX, with the preprocessing of images "
                      "inside."},
                     {"cputrain export --model vgg16 --model-file mine.json",
                      "Writes a built-in model as a file to change, for --model mine.json."}},
                .common = {"weights", "onnx", "onnx-resize", "safetensors", "export-layout",
                           "class-names", "model", "model-file"},
                .others = "convert,onnx,save"},
       .task = {.trains = false, .one_job = false},
       .add_flags = add_export_flags,
       .check = check_export,
       .run = run_export,
       .results_are_files = [](auto&&...) { return true; },
       .results =
           [](const ExportOptions& options) {
             return std::vector{std::pair("--onnx", options.onnx),
                                std::pair("--safetensors", options.safetensors),
                                std::pair("--model-file", options.model_file)};
           },
       .needs_weights = true});
}

}  // namespace cputrain::commands
