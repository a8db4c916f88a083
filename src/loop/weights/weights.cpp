#include "loop/weights/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/strict_json.h"
#include "core/text.h"
#include "core/version.h"
#include "data/classes/class_names.h"
#include "loop/safety/numbers.h"
#include "model/init.h"
#include "model/model_json.h"
#include "model/normalization.h"
#include "model/safetensors.h"
#include "model/weights/weight_format.h"

namespace cputrain::loop {
namespace {

constexpr const char* kFormat = "cputrain";
constexpr const char* kFormatVersion = "1";
constexpr const char *kTorchFormat = "pt", *kTorchLayout = "torch";
constexpr const char *kKernels = "kernels", *kFit = "fit";
constexpr const char *kData = "data", *kDataPlace = "data_place", *kExpand = "expand",
                     *kEarlier = "data_earlier", *kSeed = "seed", *kSplit = "validation_split";

[[noreturn]] void wrong(const std::filesystem::path& path, const std::string& what) {
  fail(ExitCode::data, fmt::format("weight file {} {} (the model cannot be rebuilt from it); use a "
                                   "weights.safetensors that cputrain wrote",
                                   path.string(), what));
}

nlohmann::json parsed(const std::filesystem::path& path, const std::string& text) {
  try {
    return parse_strict_json(text);
  } catch (const std::runtime_error& error) {
    wrong(path, std::string("has a damaged description: ") + error.what());
  }
}

/// A number that is the whole text and lies within its limits.
template <class T>
T number(const std::filesystem::path& path, const std::string& what, const std::string& text, T min,
         T max) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || !(value >= min && value <= max)) {
    wrong(path, fmt::format("has a {} that is not a number from {} to {}", what, min, max));
  }
  return value;
}

/// 16 hexadecimal digits.
std::uint64_t hash_of(const std::filesystem::path& path, const std::string& key,
                      const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc{} || stop != end || text.size() != 16) {
    wrong(path, fmt::format("has a '{}' that is not 16 hexadecimal digits", key));
  }
  return value;
}

std::optional<TrainingData> data_of(const std::filesystem::path& path,
                                    const model::safetensors::Metadata& metadata) {
  if (!metadata.contains(kData)) return std::nullopt;
  TrainingData data{.fingerprint = hash_of(path, kData, metadata.at(kData))};
  if (metadata.contains(kDataPlace)) {
    data.place = hash_of(path, kDataPlace, metadata.at(kDataPlace));
  }
  if (metadata.contains(kExpand)) {
    const auto expand = value_named<data::Expand>(metadata.at(kExpand));
    if (!expand) wrong(path, "names no way to turn images that is known");
    data.expand = *expand;
  }
  if (metadata.contains(kEarlier)) {
    for (const std::string& one : split(metadata.at(kEarlier), ',')) {
      data.earlier.push_back(hash_of(path, kEarlier, one));
    }
  }
  return data;
}

/// Files of earlier versions do not say, or know no fit.
data::Resizing resizing_of(const std::filesystem::path& path,
                           const model::safetensors::Metadata& metadata) {
  if (!metadata.contains("resize")) return data::Resize::bilinear_plain;
  const auto way = value_named<data::Resize>(metadata.at("resize"));
  if (!way) wrong(path, "names no way to resize images that is known");
  if (!metadata.contains(kFit)) return data::earlier_resize(*way);
  try {
    return {*way, data::parse_fit(metadata.at(kFit))};
  } catch (const Error&) {
    wrong(path, "names no way to fit images into a square that is known");
  }
}

std::uint64_t seed_of(const std::filesystem::path& path,
                      const model::safetensors::Metadata& metadata) {
  return number<std::uint64_t>(path, "seed", metadata.at(kSeed), 0, UINT64_MAX);
}

double split_of(const std::filesystem::path& path, const model::safetensors::Metadata& metadata) {
  return number<double>(path, "validation split", metadata.at(kSplit), 0, 0.99);
}

std::string classes_of_outputs(std::size_t classes, int outputs) {
  return fmt::format("names {} classes for {} output{}", classes, outputs, outputs == 1 ? "" : "s");
}

/// A model's name makes paths.
void check_names(const std::filesystem::path& path, const ModelDescription& description) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (description.model.empty() || !std::ranges::all_of(description.model, plain)) {
    wrong(path, "names a model with other signs than letters, digits, hyphens and underscores");
  }
  const auto& classes = description.classes;
  const std::string mistake = data::class_names_mistake(classes);
  if (!mistake.empty()) wrong(path, "is damaged: " + mistake);
  const int outputs = description.graph.back().dst.channels;
  if (classes.size() != static_cast<std::size_t>(outputs == 1 ? 2 : outputs)) {
    wrong(path, classes_of_outputs(classes.size(), outputs));
  }
}

}  // namespace

void initialise_weights(const model::Graph& graph, const compute::Program& program,
                        std::uint64_t seed, const Array& weights) {
  std::size_t parameter = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) {
      program.parameters().from_canonical(parameter++, model::initial_values(node, spec, seed),
                                          weights);
    }
  }
}

std::string weights_hash(const compute::Program& program, const Array& weights) {
  Fnv1a hash;
  for (std::size_t p = 0; p < program.layout().parameters.size(); ++p) {
    hash.add(std::as_bytes(
        std::span<const float>(program.parameters().to_canonical_floats(p, weights))));
  }
  return fmt::format("{:016x}", hash.value());
}

model::safetensors::Metadata weights_metadata(const ModelDescription& description) {
  const model::Input& input = std::get<model::Input>(description.graph.nodes()[0].layer);
  model::safetensors::Metadata metadata{
      {"format", kFormat},
      {"format_version", kFormatVersion},
      {"cputrain", std::string(kVersion)},
      {"layout", "keras"},
      {"model", description.model},
      {"classes", json_text(nlohmann::json(description.classes))},
      {"graph", json_text(model::to_json(description.graph))},
      {"preprocessing",
       fmt::format("RGB, {}{}, x * {} + {}",
                   description.exif == data::Exif::apply ? "turned by EXIF orientation, " : "",
                   in_words(description.resize, description.graph.image()),
                   model::per_colour_text(input.scale), model::per_colour_text(input.offset))},
      {"resize", std::string(word_of(description.resize.way))},
      {kFit, to_text(description.resize.fit)},
      {"exif", std::string(word_of(description.exif))},
      {"seed", std::to_string(description.seed)},
      {"validation_split", fmt::format("{}", description.validation_split)}};
  if (!description.kernels.empty()) metadata[kKernels] = description.kernels;
  if (description.data) {
    metadata[kData] = fmt::format("{:016x}", description.data->fingerprint);
    metadata[kExpand] = std::string(word_of(description.data->expand));
    if (description.data->place) {
      metadata[kDataPlace] = fmt::format("{:016x}", description.data->place);
    }
    if (!description.data->earlier.empty()) {
      metadata[kEarlier] = fmt::format("{:016x}", fmt::join(description.data->earlier, ","));
    }
  }
  return metadata;
}

void mark_as_torch(model::safetensors::Metadata& metadata) {
  metadata["format"] = kTorchFormat;
  metadata["layout"] = kTorchLayout;
}

std::string kernels_of(const model::WeightArrays& file) {
  const auto found = file.metadata().find(kKernels);
  return found == file.metadata().end() ? "" : found->second;
}

void save_weights(const std::filesystem::path& path, const ModelDescription& description,
                  const compute::Program& program, const Array& weights,
                  system::Durability durability) {
  std::vector<model::safetensors::OutTensor> tensors;
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    tensors.push_back(
        {parameters[p].name,
         {parameters[p].extents.begin(), parameters[p].extents.end()},
         [&program, &weights, p] { return program.parameters().to_canonical_floats(p, weights); }});
  }
  model::safetensors::write(path, weights_metadata(description), std::move(tensors), durability);
}

namespace {

[[noreturn]] void not_described(const std::filesystem::path& path) {
  fail(ExitCode::data,
       fmt::format("weight file {0} does not say its format (nor which network it is of); of a "
                   "file of another program, `cputrain export --model NAME --weights {0} "
                   "--safetensors NEW` makes one that does",
                   path.string()));
}

}  // namespace

ModelDescription read_description(const std::filesystem::path& path) {
  if (model::is_of_keras(path)) not_described(path);
  const model::safetensors::File file(path);
  const auto& metadata = file.metadata();
  if (!metadata.contains("format") && !metadata.contains("graph")) not_described(path);
  for (const char* key :
       {"format", "format_version", "model", "classes", "graph", "seed", "validation_split"}) {
    if (!metadata.contains(key)) wrong(path, fmt::format("does not say its {}", key));
  }
  // What `export` writes for PyTorch has the format that PyTorch's loaders look for.
  const bool ours = metadata.at("format") == kFormat ||
                    (metadata.at("format") == kTorchFormat && metadata.contains("layout") &&
                     metadata.at("layout") == kTorchLayout);
  if (!ours || metadata.at("format_version") != kFormatVersion) {
    wrong(path, "has another format version");
  }
  try {
    auto graph = model::graph_from_json(parsed(path, metadata.at("graph")), path.string());
    ModelDescription description{metadata.at("model"), parsed(path, metadata.at("classes")),
                                 std::move(graph), seed_of(path, metadata),
                                 split_of(path, metadata)};
    description.resize = resizing_of(path, metadata);
    if (metadata.contains("exif")) {
      const auto exif = value_named<data::Exif>(metadata.at("exif"));
      if (!exif) wrong(path, "names no use of EXIF orientation that is known");
      description.exif = *exif;
    }
    if (metadata.contains(kKernels)) description.kernels = metadata.at(kKernels);
    description.data = data_of(path, metadata);
    check_names(path, description);
    return description;
  } catch (const nlohmann::json::exception& error) {
    wrong(path, std::string("has a damaged description: ") + error.what());
  }
}

namespace {

std::vector<WantedParameter> wanted_by(const compute::Program& program) {
  std::vector<WantedParameter> wanted;
  for (const auto& p : program.layout().parameters) wanted.push_back({p.name, p.extents});
  return wanted;
}

/// Whose weights a file has, and what to do about it.
std::string other_model_text(const model::WeightArrays& file) {
  const char* rest = "or start training from what fits with --partial";
  const auto name = file.metadata().find("model");
  if (!file.describes_itself() || name == file.metadata().end()) {
    return fmt::format("(its weights belong to another model); check --weights and --model, {}",
                       rest);
  }
  const nlohmann::json graph = parsed(file.path(), file.metadata().at("graph"));
  const Shape image = model::graph_from_json(graph, file.path().string()).image();
  return fmt::format(
      "(its weights are those of {} at {}x{}); give --model and --image-size as "
      "they were in its training, {}",
      printable(name->second), image.height, image.width, rest);
}

void need_whole(const model::WeightArrays& file, const WeightMatch& match) {
  if (match.whole()) return;
  fail(ExitCode::data,
       fmt::format("weight file {} does not fit the model: {} {}", file.path().string(),
                   misfit_text(match), other_model_text(file)));
}

/// Normalization divides by the root of it, so that every answer would be NaN.
void need_no_negative_variance(const std::filesystem::path& path, const std::string& name,
                               const auto& values) {
  if (!name.ends_with("/moving_variance")) return;
  const auto negative = std::ranges::find_if(values, [](double value) { return value < 0; });
  if (negative == values.end()) return;
  fail(ExitCode::data, fmt::format("weight file {}: {} holds {:g}, which no variance can be (every "
                                   "answer would be NaN); use a file that is not damaged",
                                   path.string(), name, *negative));
}

/// Values on their way into the arena.
void put(const model::WeightArrays& file, LoadedWeights& loaded, const compute::Program& program,
         std::size_t parameter, const std::vector<double>& values, const Array& weights) {
  need_no_negative_variance(file.path(), program.layout().parameters[parameter].name, values);
  if (!all_numbers(values)) loaded.nonfinite.push_back(program.layout().parameters[parameter].name);
  program.parameters().from_canonical(parameter, values, weights);
}

LoadedWeights load_fitting(const model::WeightArrays& file, WeightMatch match,
                           const compute::Program& program, const Array& weights,
                           const ClassRows& rows) {
  LoadedWeights loaded{std::move(match)};
  for (const std::size_t p : loaded.match.fitting) {
    const std::string& name = program.layout().parameters[p].name;
    std::vector<double> values = file.find(name)->read();
    if (rows.concerns(name)) rows.rearrange(name, values);
    put(file, loaded, program, p, values, weights);
  }
  return loaded;
}

/// Outputs of classes that both have, where the file has more or fewer of them.
void load_common_classes(const model::WeightArrays& file, const compute::Program& program,
                         const Array& weights, const ClassRows& rows, LoadedWeights& loaded) {
  std::erase_if(loaded.match.other_columns, [&](const auto& array) {
    const std::string& name = program.layout().parameters[array.position].name;
    const auto* stored = file.find(name);
    if (!rows.has_columns(name, stored->extents.back())) return false;
    std::vector<double> values = program.parameters().to_canonical(array.position, weights);
    rows.take_columns(stored->read(), values);
    put(file, loaded, program, array.position, values, weights);
    loaded.by_class.push_back(name);
    return true;
  });
}

}  // namespace

LoadedWeights load_weights(const model::WeightArrays& file, const compute::Program& program,
                           const Array& weights, const ClassRows& rows) {
  WeightMatch match = match_weights(file, wanted_by(program));
  need_whole(file, match);
  if (!rows.are_equally_many()) {
    wrong(file.path(), classes_of_outputs(rows.file_classes, rows.outputs.count));
  }
  return load_fitting(file, std::move(match), program, weights, rows);
}

LoadedWeights load_fitting_weights(const model::WeightArrays& file, const compute::Program& program,
                                   const Array& weights, const ClassRows& rows) {
  WeightMatch match = match_weights(file, wanted_by(program));
  if (match.fitting.empty()) {
    fail(
        ExitCode::data,
        fmt::format("weight file {} has nothing that fits the model: {} (training would start from "
                    "initial weights); leave --weights out, or choose the --model it was made for",
                    file.path().string(), misfit_text(match)));
  }
  LoadedWeights loaded = load_fitting(file, std::move(match), program, weights, rows);
  load_common_classes(file, program, weights, rows, loaded);
  return loaded;
}

bool fits_but_for_outputs(const model::WeightArrays& file, const compute::Program& program,
                          const model::ClassOutputs& outputs) {
  const WeightMatch match = match_weights(file, wanted_by(program));
  const auto is_output = [&](const std::string& name) {
    return std::ranges::find(outputs.arrays, name) != outputs.arrays.end();
  };
  return match.other_shape.empty() && match.extra.empty() &&
         std::ranges::all_of(match.missing, is_output) &&
         std::ranges::all_of(match.other_columns, [&](const auto& array) {
           return is_output(program.layout().parameters[array.position].name);
         });
}

std::string nonfinite_text(const std::filesystem::path& path,
                           const std::vector<std::string>& arrays, std::size_t of) {
  if (arrays.empty()) return "";
  return fmt::format("weight file {}: {} of {} parameter arrays hold NaN or infinity: {}",
                     path.string(), arrays.size(), of, first_few(arrays, 3));
}

std::optional<PastTraining> past_training(const model::WeightArrays& file) {
  const auto& metadata = file.metadata();
  const auto& path = file.path();
  const auto data = data_of(path, metadata);
  if (!data || !metadata.contains(kSeed) || !metadata.contains(kSplit)) return std::nullopt;
  return PastTraining{*data, seed_of(path, metadata), split_of(path, metadata)};
}

std::vector<std::string> classes_of_weights(const model::WeightArrays& file) {
  const auto found = file.metadata().find("classes");
  if (found == file.metadata().end()) return {};
  try {
    return parsed(file.path(), found->second);
  } catch (const nlohmann::json::exception& error) {
    wrong(file.path(), std::string("has damaged names of classes: ") + error.what());
  }
}

std::optional<model::Input> input_of_weights(const model::WeightArrays& file) {
  if (!file.describes_itself()) return std::nullopt;
  const nlohmann::json graph = parsed(file.path(), file.metadata().at("graph"));
  const auto read = model::graph_from_json(graph, file.path().string());
  return std::get<model::Input>(read.nodes()[0].layer);
}

std::optional<data::Resizing> resizing_of_weights(const model::WeightArrays& file) {
  if (!file.describes_itself() || !file.metadata().contains("resize")) return std::nullopt;
  return resizing_of(file.path(), file.metadata());
}

void check_outputs_agree(const model::WeightArrays& file, const model::ClassOutputs& outputs) {
  const model::StoredArray* first = nullptr;
  for (const std::string& name : outputs.arrays) {
    const model::StoredArray* array = file.find(name);
    if (!array || array->extents.empty()) continue;
    if (!first) first = array;
    if (array->extents.back() == first->extents.back()) continue;
    fail(ExitCode::data,
         fmt::format("weight file {}: {} has {} outputs and {} has {} (they make the same outputs, "
                     "so the file is damaged or put together of two); check --weights",
                     file.path().string(), first->name, first->extents.back(), array->name,
                     array->extents.back()));
  }
}

model::WeightValues open_weights(model::WeightArrays arrays, const model::Graph& graph) {
  const auto file = std::make_shared<const model::WeightArrays>(std::move(arrays));
  std::vector<WantedParameter> wanted;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) wanted.push_back({spec.name, spec.extents});
  }
  check_outputs_agree(*file, model::class_outputs(graph));
  need_whole(*file, match_weights(*file, wanted));
  return [file](const std::string& parameter) {
    std::vector<float> values = file->find(parameter)->floats();
    need_no_negative_variance(file->path(), parameter, values);
    return values;
  };
}

}  // namespace cputrain::loop
