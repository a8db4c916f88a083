#include "weights/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/json_text.h"
#include "core/names.h"
#include "core/text.h"
#include "core/version.h"
#include "data/classes/class_names.h"
#include "model/model_json.h"
#include "model/normalization.h"

namespace cputrain::weights {
namespace {

constexpr const char* kFormat = "cputrain";
constexpr const char* kFormatVersion = "1";
constexpr const char *kTorchFormat = "pt", *kTorchLayout = "torch";
constexpr const char *kKernels = "kernels", *kResize = "resize", *kFit = "fit", *kExif = "exif";
constexpr const char *kData = "data", *kDataPlace = "data_place", *kExpand = "expand",
                     *kEarlier = "data_earlier", *kEarlierPlaces = "data_earlier_places",
                     *kOrigin = "data_origin", *kImageNames = "data_image_names",
                     *kImageContents = "data_image_contents", *kPhotographs = "data_photographs",
                     *kSeed = "seed", *kSplit = "validation_split";

[[noreturn]] void wrong(const std::filesystem::path& path, const std::string& what) {
  fail(ExitCode::data,
       "weight file {} {} (the model cannot be rebuilt from it); use a weights.safetensors that "
       "cputrain wrote",
       path.string(), what);
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
  const auto value = number_in<T>(text);
  if (!value || !(*value >= min && *value <= max)) {
    wrong(path, fmt::format("has a {} that is not a number from {} to {}", what, min, max));
  }
  return *value;
}

/// 16 hexadecimal digits.
std::uint64_t hash_of(const std::filesystem::path& path, const std::string& key,
                      const std::string& text) {
  const auto value = hexadecimal<std::uint64_t>(text);
  if (!value || text.size() != 16) {
    wrong(path, fmt::format("has a '{}' that is not 16 hexadecimal digits", key));
  }
  return *value;
}

/// Hashes with commas between them; none where the file has no such key.
std::vector<std::uint64_t> hashes_of(const std::filesystem::path& path,
                                     const safetensors::Metadata& metadata, const char* key) {
  std::vector<std::uint64_t> hashes;
  if (!metadata.contains(key)) return hashes;
  for (const std::string& one : split(metadata.at(key), ',')) {
    hashes.push_back(hash_of(path, key, one));
  }
  return hashes;
}

std::optional<TrainingData> data_of(const std::filesystem::path& path,
                                    const safetensors::Metadata& metadata) {
  if (!metadata.contains(kData)) return std::nullopt;
  TrainingData data{.fingerprint = hash_of(path, kData, metadata.at(kData))};
  if (metadata.contains(kDataPlace))
    data.place = hash_of(path, kDataPlace, metadata.at(kDataPlace));
  if (metadata.contains(kExpand)) {
    const auto expand = value_named<data::Expand>(metadata.at(kExpand));
    if (!expand) wrong(path, "names no way to turn images that is known");
    data.expand = *expand;
  }
  data.earlier = hashes_of(path, metadata, kEarlier);
  data.earlier_places = hashes_of(path, metadata, kEarlierPlaces);
  data.origin =
      metadata.contains(kOrigin) ? hash_of(path, kOrigin, metadata.at(kOrigin)) : data.fingerprint;
  data.image_names = hashes_of(path, metadata, kImageNames);
  data.image_contents = hashes_of(path, metadata, kImageContents);
  if (data.image_names.size() != data.image_contents.size()) {
    wrong(path, "names other images than it knows");
  }
  data.photographs = !metadata.contains(kPhotographs);
  return data;
}

data::Resizing resizing_of(const std::filesystem::path& path,
                           const safetensors::Metadata& metadata) {
  const auto way = value_named<data::Resize>(metadata.at(kResize));
  if (!way) wrong(path, "names no way to resize images that is known");
  try {
    return {*way, data::parse_fit(metadata.at(kFit))};
  } catch (const Error&) {
    wrong(path, "names no way to fit images into a square that is known");
  }
}

data::Exif exif_of(const std::filesystem::path& path, const safetensors::Metadata& metadata) {
  const auto exif = value_named<data::Exif>(metadata.at(kExif));
  if (!exif) wrong(path, "names no use of EXIF orientation that is known");
  return *exif;
}

std::uint64_t seed_of(const std::filesystem::path& path, const safetensors::Metadata& metadata) {
  return number<std::uint64_t>(path, "seed", metadata.at(kSeed), 0, UINT64_MAX);
}

double split_of(const std::filesystem::path& path, const safetensors::Metadata& metadata) {
  return number<double>(path, "validation split", metadata.at(kSplit), 0, 0.99);
}

std::string classes_of_outputs(std::size_t classes, int outputs) {
  return fmt::format("names {} for {}", counted(classes, "class"), counted(outputs, "output"));
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

[[noreturn]] void not_described(const std::filesystem::path& path) {
  fail(ExitCode::data,
       "weight file {0} does not say its format (nor which network it is of); of a file of another "
       "program, `cputrain export --model NAME --weights {0} --safetensors NEW` makes one that "
       "does, with NAME a built-in model or a model file of the same layers (src/zoo/README.md, "
       "\"A network in a file\")",
       path.string());
}

}  // namespace

safetensors::Metadata weights_metadata(const ModelDescription& description) {
  const model::Input& input = description.graph.input();
  safetensors::Metadata metadata{
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
      {kResize, std::string(word_of(description.resize.way))},
      {kFit, to_text(description.resize.fit)},
      {kExif, std::string(word_of(description.exif))},
      {kSeed, std::to_string(description.seed)},
      {kSplit, fmt::format("{}", description.validation_split)}};
  if (!description.kernels.empty()) metadata[kKernels] = description.kernels;
  if (description.data) {
    metadata[kData] = fmt::format("{:016x}", description.data->fingerprint);
    metadata[kExpand] = std::string(word_of(description.data->expand));
    const auto add_hashes = [&](const char* key, const std::vector<std::uint64_t>& hashes) {
      if (!hashes.empty()) metadata[key] = fmt::format("{:016x}", fmt::join(hashes, ","));
    };
    if (description.data->place) add_hashes(kDataPlace, {description.data->place});
    add_hashes(kEarlier, description.data->earlier);
    add_hashes(kEarlierPlaces, description.data->earlier_places);
    if (description.data->origin != description.data->fingerprint) {
      add_hashes(kOrigin, {description.data->origin});
    }
    add_hashes(kImageNames, description.data->image_names);
    add_hashes(kImageContents, description.data->image_contents);
    if (!description.data->photographs) metadata[kPhotographs] = "no";
  }
  return metadata;
}

void mark_as_torch(safetensors::Metadata& metadata) {
  metadata["format"] = kTorchFormat;
  metadata["layout"] = kTorchLayout;
}

std::string kernels_of(const WeightArrays& file) {
  const auto found = file.metadata.find(kKernels);
  return found == file.metadata.end() ? "" : found->second;
}

bool describes_itself(const std::filesystem::path& path) {
  return weight_format(path) == WeightFormat::safetensors &&
         safetensors::open(path).metadata().contains("graph");
}

ModelDescription read_description(const std::filesystem::path& path) {
  if (weight_format(path) != WeightFormat::safetensors) not_described(path);
  const TensorFile file = safetensors::open(path);
  const auto& metadata = file.metadata();
  if (!metadata.contains("format") && !metadata.contains("graph")) not_described(path);
  for (const char* key : {"format", "format_version", "model", "classes", "graph", kResize, kFit,
                          kExif, kSeed, kSplit}) {
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
    description.exif = exif_of(path, metadata);
    if (metadata.contains(kKernels)) description.kernels = metadata.at(kKernels);
    description.data = data_of(path, metadata);
    check_names(path, description);
    return description;
  } catch (const nlohmann::json::exception& error) {
    wrong(path, std::string("has a damaged description: ") + error.what());
  }
}

std::optional<PastTraining> past_training(const WeightArrays& file) {
  const auto& metadata = file.metadata;
  const auto& path = file.path;
  const auto data = data_of(path, metadata);
  if (!data || !metadata.contains(kSeed) || !metadata.contains(kSplit)) return std::nullopt;
  return PastTraining{*data, seed_of(path, metadata), split_of(path, metadata)};
}

std::vector<std::string> classes_of_weights(const WeightArrays& file) {
  const auto found = file.metadata.find("classes");
  if (found == file.metadata.end()) return {};
  try {
    return parsed(file.path, found->second);
  } catch (const nlohmann::json::exception& error) {
    wrong(file.path, std::string("has damaged names of classes: ") + error.what());
  }
}

std::optional<model::Graph> graph_of_weights(const WeightArrays& file) {
  if (!file.describes_itself()) return std::nullopt;
  const nlohmann::json graph = parsed(file.path, file.metadata.at("graph"));
  return model::graph_from_json(graph, file.path.string());
}

Preprocessing preprocessing_of(const ModelDescription& model) {
  return {
      .image = model.graph.image(),
      .pixels = model.graph.input(),
      .resize = model.resize,
      .exif = model.data && !model.data->photographs ? std::nullopt : std::optional(model.exif)};
}

Preprocessing preprocessing_of(const WeightArrays& file) {
  Preprocessing then{.image = file.image};
  const auto& metadata = file.metadata;
  if (const auto graph = graph_of_weights(file)) {
    then.image = graph->image();
    then.pixels = graph->input();
  }
  const auto past = past_training(file);
  const bool from_synthetic = past && past->data.place == 0;  // made at their size
  if (from_synthetic || !file.describes_itself()) return then;
  if (metadata.contains(kResize) && metadata.contains(kFit)) {
    then.resize = resizing_of(file.path, metadata);
  }
  const bool photographs = !past || past->data.photographs;
  if (metadata.contains(kExif) && photographs) then.exif = exif_of(file.path, metadata);
  return then;
}

void refuse_other_classes(const std::filesystem::path& path, std::size_t classes, int outputs) {
  wrong(path, classes_of_outputs(classes, outputs));
}

}  // namespace cputrain::weights
