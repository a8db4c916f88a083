#include "train/weights.h"

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
#include "core/version.h"
#include "data/class_names.h"
#include "model/init.h"
#include "model/model_json.h"
#include "model/safetensors.h"

namespace cputrain {
namespace {

constexpr const char* kFormat = "cputrain";
constexpr const char* kFormatVersion = "1";
constexpr const char* kKernels = "kernels";

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

/// A model's name makes paths.
void check_names(const std::filesystem::path& path, const ModelDescription& description) {
  const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  if (description.model.empty() || !std::ranges::all_of(description.model, plain)) {
    wrong(path, "names a model with other signs than letters, digits, hyphens and underscores");
  }
  const auto& classes = description.classes;
  const std::string mistake = class_names_mistake(classes);
  if (!mistake.empty()) wrong(path, "is damaged: " + mistake);
  const int outputs = description.graph.back().dst.channels;
  if (classes.size() != static_cast<std::size_t>(outputs == 1 ? 2 : outputs)) {
    wrong(path, fmt::format("names {} classes for {} outputs", classes.size(), outputs));
  }
}

}  // namespace

void initialise_weights(const Graph& graph, const Program& program, std::uint64_t seed,
                        const Array& weights) {
  std::size_t parameter = 0;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) {
      program.from_canonical(parameter++, initial_values(node, spec, seed), weights);
    }
  }
}

std::string weights_hash(const Program& program, const Array& weights) {
  Fnv1a hash;
  for (std::size_t p = 0; p < program.layout().parameters.size(); ++p) {
    hash.add(std::as_bytes(std::span<const float>(program.to_canonical_floats(p, weights))));
  }
  return fmt::format("{:016x}", hash.value());
}

safetensors::Metadata weights_metadata(const ModelDescription& description) {
  const Input& input = std::get<Input>(description.graph.nodes()[0].layer);
  safetensors::Metadata metadata{
      {"format", kFormat},
      {"format_version", kFormatVersion},
      {"cputrain", std::string(kVersion)},
      {"layout", "keras"},
      {"model", description.model},
      {"classes", json_text(nlohmann::json(description.classes))},
      {"graph", json_text(to_json(description.graph))},
      {"preprocessing", fmt::format("RGB, {} resize without antialias, x * {:.9g} + {:.9g}",
                                    resize_name(description.resize), input.scale, input.offset)},
      {"resize", std::string(resize_name(description.resize))},
      {"seed", std::to_string(description.seed)},
      {"validation_split", fmt::format("{}", description.validation_split)}};
  if (!description.kernels.empty()) metadata[kKernels] = description.kernels;
  return metadata;
}

std::string kernels_of(const std::filesystem::path& path) {
  const safetensors::File file(path);
  const auto found = file.metadata().find(kKernels);
  return found == file.metadata().end() ? "" : found->second;
}

void save_weights(const std::filesystem::path& path, const ModelDescription& description,
                  const Program& program, const Array& weights, Durability durability) {
  std::vector<safetensors::OutTensor> tensors;
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    tensors.push_back(
        {parameters[p].name,
         {parameters[p].extents.begin(), parameters[p].extents.end()},
         [&program, &weights, p] { return program.to_canonical_floats(p, weights); }});
  }
  safetensors::write(path, weights_metadata(description), std::move(tensors), durability);
}

ModelDescription read_description(const std::filesystem::path& path) {
  const safetensors::File file(path);
  const auto& metadata = file.metadata();
  for (const char* key :
       {"format", "format_version", "model", "classes", "graph", "seed", "validation_split"}) {
    if (!metadata.contains(key)) wrong(path, fmt::format("does not say its {}", key));
  }
  if (metadata.at("format") != kFormat || metadata.at("format_version") != kFormatVersion) {
    wrong(path, "has another format version");
  }
  try {
    auto graph = graph_from_json(parsed(path, metadata.at("graph")), path.string());
    ModelDescription description{
        metadata.at("model"), parsed(path, metadata.at("classes")), std::move(graph),
        number<std::uint64_t>(path, "seed", metadata.at("seed"), 0, UINT64_MAX),
        number<double>(path, "validation split", metadata.at("validation_split"), 0, 0.99)};
    if (metadata.contains("resize")) {  // files of earlier versions do not say
      const auto resize = resize_of(metadata.at("resize"));
      if (!resize) wrong(path, "names no way to resize pictures that is known");
      description.resize = *resize;
    }
    if (metadata.contains(kKernels)) description.kernels = metadata.at(kKernels);
    check_names(path, description);
    return description;
  } catch (const nlohmann::json::exception& error) {
    wrong(path, std::string("has a damaged description: ") + error.what());
  }
}

namespace {

std::vector<WantedParameter> wanted_by(const Program& program) {
  std::vector<WantedParameter> wanted;
  for (const auto& p : program.layout().parameters) wanted.push_back({p.name, p.extents});
  return wanted;
}

void need_whole(const std::filesystem::path& path, const WeightMatch& match) {
  if (match.whole()) return;
  fail(ExitCode::data, fmt::format("weight file {} does not fit the model: {} (its weights belong "
                                   "to another model); check --weights and --model, or start "
                                   "training from what fits with --partial",
                                   path.string(), misfit_text(match)));
}

void load_fitting(const safetensors::File& file, const WeightMatch& match, const Program& program,
                  const Array& weights) {
  for (const std::size_t p : match.fitting) {
    const auto* tensor = file.find(program.layout().parameters[p].name);
    program.from_canonical(p, file.read(*tensor), weights);
  }
}

}  // namespace

void load_weights(const std::filesystem::path& path, const Program& program, const Array& weights) {
  const safetensors::File file(path);
  const WeightMatch match = match_weights(file, wanted_by(program));
  need_whole(path, match);
  load_fitting(file, match, program, weights);
}

WeightMatch load_fitting_weights(const std::filesystem::path& path, const Program& program,
                                 const Array& weights) {
  const safetensors::File file(path);
  WeightMatch match = match_weights(file, wanted_by(program));
  if (match.fitting.empty()) {
    fail(
        ExitCode::data,
        fmt::format("weight file {} has nothing that fits the model: {} (training would start from "
                    "initial weights); leave --weights out, or choose the --model it was made for",
                    path.string(), misfit_text(match)));
  }
  load_fitting(file, match, program, weights);
  return match;
}

WeightValues open_weights(const std::filesystem::path& path, const Graph& graph) {
  const auto file = std::make_shared<safetensors::File>(path);
  std::vector<WantedParameter> wanted;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) wanted.push_back({spec.name, spec.extents});
  }
  need_whole(path, match_weights(*file, wanted));
  return [file](const std::string& parameter) { return file->read_floats(*file->find(parameter)); };
}

}  // namespace cputrain
