#include "weights/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "compute/memory.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "model/init.h"
#include "weights/description.h"
#include "weights/safetensors.h"

namespace cputrain::weights {

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

void save_weights(const std::filesystem::path& path, const ModelDescription& description,
                  const compute::Program& program, const Array& weights,
                  system::Durability durability) {
  std::vector<safetensors::OutTensor> tensors;
  const auto& parameters = program.layout().parameters;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    tensors.push_back(
        {parameters[p].name,
         {parameters[p].extents.begin(), parameters[p].extents.end()},
         [&program, &weights, p] { return program.parameters().to_canonical_floats(p, weights); }});
  }
  safetensors::write(path, weights_metadata(description), std::move(tensors), durability);
}

namespace {

std::vector<WantedParameter> wanted_by(const compute::Program& program) {
  std::vector<WantedParameter> wanted;
  for (const auto& p : program.layout().parameters) wanted.push_back({p.name, p.extents});
  return wanted;
}

std::vector<WantedParameter> wanted_by(const model::Graph& graph) {
  std::vector<WantedParameter> wanted;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) wanted.push_back({spec.name, spec.extents});
  }
  return wanted;
}

/// Whose weights a file has, and what to do about it.
std::string other_model_text(const WeightArrays& file, const WeightMatch& match) {
  const char* rest = "or start training from what fits with --partial";
  const auto name = file.metadata().find("model");
  if (!file.describes_itself() || name == file.metadata().end()) {
    if (match.differs_in_inputs()) {
      return fmt::format(
          "(the weights of {} fit images of one size alone, which was another); "
          "give the --image-size of their training, {}",
          first_few(match.other_rows, 3), rest);
    }
    return fmt::format("(its weights belong to another model); check --weights and --model, {}",
                       rest);
  }
  const Shape image = graph_of_weights(file)->image();
  return fmt::format(
      "(its weights are those of {} at {}x{}); give --model and --image-size as "
      "they were in its training, {}",
      printable(name->second), image.height, image.width, rest);
}

void need_whole(const WeightArrays& file, const WeightMatch& match) {
  if (match.whole()) return;
  fail(ExitCode::data,
       fmt::format("weight file {} does not fit the model: {} {}", file.path().string(),
                   misfit_text(match), other_model_text(file, match)));
}

/// Whether outputs of classes that both have can be taken from an array of the file.
bool has_common_columns(const WeightArrays& file, const std::string& name, const ClassRows& rows) {
  return rows.has_columns(name, file.find(name)->extents.back());
}

/// Why a head of other classes has no output in common with the file's; empty where the shapes say
/// it.
std::string no_column_text(const WeightArrays& file, const WeightMatch& match,
                           const ClassRows& rows) {
  if (match.other_columns.empty()) return "";
  const std::vector<std::string> classes = classes_of_weights(file);
  if (classes.empty()) return "; it names no classes, so its outputs may be of any";
  if (!rows.has_common()) {
    return fmt::format("; its classes are {}, and the data has none of them",
                       printable(first_few(classes, 5)));
  }
  const bool one = std::ranges::any_of(rows.outputs.arrays, [&](const std::string& name) {
    const auto* array = file.find(name);
    return rows.outputs.count == 1 || (array && array->extents.back() == 1);
  });
  return one ? "; one output that speaks for two classes is neither's" : "";
}

void need_some(const WeightArrays& file, const WeightMatch& match,
               const std::vector<WantedParameter>& wanted, const ClassRows& rows) {
  const bool common = std::ranges::any_of(match.other_columns, [&](const auto& array) {
    return has_common_columns(file, wanted[array.position].name, rows);
  });
  if (common || !match.fitting.empty()) return;
  fail(ExitCode::data,
       fmt::format("weight file {} has nothing that fits the model: {}{} (training would start "
                   "from initial weights); leave --weights out, or choose the --model it was made "
                   "for",
                   file.path().string(), misfit_text(match), no_column_text(file, match, rows)));
}

bool fits_but_for(const WeightMatch& match, const std::vector<WantedParameter>& wanted,
                  const model::ClassOutputs& outputs) {
  const auto is_output = [&](const std::string& name) {
    return std::ranges::find(outputs.arrays, name) != outputs.arrays.end();
  };
  return match.other_shape.empty() && match.extra.empty() &&
         std::ranges::all_of(match.missing, is_output) &&
         std::ranges::all_of(match.other_columns, [&](const auto& array) {
           return is_output(wanted[array.position].name);
         });
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
void put(const WeightArrays& file, LoadedWeights& loaded, const compute::Program& program,
         std::size_t parameter, const std::vector<double>& values, const Array& weights) {
  need_no_negative_variance(file.path(), program.layout().parameters[parameter].name, values);
  if (!compute::all_numbers(values))
    loaded.nonfinite.push_back(program.layout().parameters[parameter].name);
  program.parameters().from_canonical(parameter, values, weights);
}

LoadedWeights load_fitting(const WeightArrays& file, WeightMatch match,
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
void load_common_classes(const WeightArrays& file, const compute::Program& program,
                         const Array& weights, const ClassRows& rows, LoadedWeights& loaded) {
  std::erase_if(loaded.match.other_columns, [&](const auto& array) {
    const std::string& name = program.layout().parameters[array.position].name;
    if (!has_common_columns(file, name, rows)) return false;
    std::vector<double> values = program.parameters().to_canonical(array.position, weights);
    rows.take_columns(file.find(name)->read(), values);
    put(file, loaded, program, array.position, values, weights);
    loaded.by_class.push_back(name);
    return true;
  });
}

}  // namespace

LoadedWeights load_weights(const WeightArrays& file, const compute::Program& program,
                           const Array& weights, const ClassRows& rows) {
  WeightMatch match = match_weights(file, wanted_by(program));
  need_whole(file, match);
  if (!rows.are_equally_many()) {
    refuse_other_classes(file.path(), rows.file_classes, rows.outputs.count);
  }
  return load_fitting(file, std::move(match), program, weights, rows);
}

LoadedWeights load_fitting_weights(const WeightArrays& file, const compute::Program& program,
                                   const Array& weights, const ClassRows& rows) {
  const std::vector<WantedParameter> wanted = wanted_by(program);
  WeightMatch match = match_weights(file, wanted);
  need_some(file, match, wanted, rows);
  LoadedWeights loaded = load_fitting(file, std::move(match), program, weights, rows);
  load_common_classes(file, program, weights, rows, loaded);
  return loaded;
}

bool fits_but_for_outputs(const WeightArrays& file, const compute::Program& program,
                          const model::ClassOutputs& outputs) {
  const std::vector<WantedParameter> wanted = wanted_by(program);
  return fits_but_for(match_weights(file, wanted), wanted, outputs);
}

void check_fits(const WeightArrays& file, const model::Graph& graph, bool partial,
                const ClassRows& rows) {
  const std::vector<WantedParameter> wanted = wanted_by(graph);
  const WeightMatch match = match_weights(file, wanted);
  const bool other_head =
      !file.describes_itself() && fits_but_for(match, wanted, model::class_outputs(graph));
  partial || other_head ? need_some(file, match, wanted, rows) : need_whole(file, match);
}

std::string nonfinite_text(const std::filesystem::path& path,
                           const std::vector<std::string>& arrays, std::size_t of) {
  if (arrays.empty()) return "";
  return fmt::format("weight file {}: {} of {} parameter arrays hold NaN or infinity: {}",
                     path.string(), arrays.size(), of, first_few(arrays, 3));
}

void check_outputs_agree(const WeightArrays& file, const model::ClassOutputs& outputs) {
  const StoredArray* first = nullptr;
  for (const std::string& name : outputs.arrays) {
    const StoredArray* array = file.find(name);
    if (!array || array->extents.empty()) continue;
    if (!first) first = array;
    if (array->extents.back() == first->extents.back()) continue;
    fail(ExitCode::data,
         fmt::format("weight file {}: {} has {} and {} has {} (they make the same outputs, "
                     "so the file is damaged or put together of two); check --weights",
                     file.path().string(), first->name, counted(first->extents.back(), "output"),
                     array->name, array->extents.back()));
  }
}

model::WeightValues open_weights(WeightArrays arrays, const model::Graph& graph) {
  const auto file = std::make_shared<const WeightArrays>(std::move(arrays));
  check_outputs_agree(*file, model::class_outputs(graph));
  need_whole(*file, match_weights(*file, wanted_by(graph)));
  return [file](const std::string& parameter) {
    std::vector<float> values = file->find(parameter)->floats();
    need_no_negative_variance(file->path(), parameter, values);
    return values;
  };
}

}  // namespace cputrain::weights
