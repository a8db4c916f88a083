#include "weights/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "compute/memory.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/text.h"
#include "model/graph.h"
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

bool same(std::span<const std::size_t> stored, std::span<const int> wanted) {
  return std::ranges::equal(stored, wanted, {}, {},
                            [](int n) { return static_cast<std::size_t>(n); });
}

Fit fit_of(std::span<const std::size_t> stored, std::span<const int> wanted) {
  if (same(stored, wanted)) return Fit::whole;
  if (stored.empty() || stored.size() != wanted.size()) return Fit::other_shape;
  const std::size_t last = stored.size() - 1;
  if (same(stored.first(last), wanted.first(last))) return Fit::other_outputs;
  return last == 1 && same(stored.last(1), wanted.last(1)) ? Fit::other_inputs : Fit::other_shape;
}

/// `match` has the rows of a network.
WeightMatch matched(const WeightArrays& file, WeightMatch match) {
  const auto arrays = file.by_name();
  std::set<std::string> known;
  for (WeightMatch::Row& row : match.rows) {
    known.insert(row.parameter);
    const auto found = arrays.find(row.parameter);
    if (found == arrays.end()) continue;
    row.array = *found->second;
    row.fit = fit_of(row.array->extents, row.extents);
  }
  for (const StoredArray& array : file.arrays) {
    if (!known.contains(array.name)) match.extra.push_back(array);
  }
  return match;
}

WeightMatch match_weights(const WeightArrays& file, const model::Graph& graph) {
  WeightMatch match;
  for (const auto& node : graph.nodes()) {
    for (const auto& spec : node.parameters) match.rows.push_back({spec.name, spec.extents});
  }
  return matched(file, std::move(match));
}

WeightMatch match_weights(const WeightArrays& file, const compute::ParameterLayout& layout) {
  WeightMatch match;
  for (const auto& parameter : layout.parameters) {
    match.rows.push_back({parameter.name, parameter.extents});
  }
  return matched(file, std::move(match));
}

}  // namespace

bool ClassRows::concerns(const std::string& array) const {
  return !source.empty() && std::ranges::count(outputs.arrays, array) > 0;
}

void ClassRows::rearrange(const std::string& array, std::vector<double>& values) const {
  if (!are_equally_many()) return;
  if (outputs.count == 1) {  // which speaks for two classes
    const bool swaps = source.size() == 2 && source[0] == 1u && source[1] == 0u;
    if (!swaps || std::ranges::count(outputs.negated, array) == 0) return;
    for (double& value : values) value = -value;
    return;
  }
  const std::vector<double> from = values;
  take_columns(from, values);
}

bool ClassRows::has_common() const {
  return std::ranges::any_of(source, [](const auto& from) { return from.has_value(); });
}

bool ClassRows::has_columns(const std::string& array, std::size_t file_columns) const {
  return has_common() && concerns(array) && file_columns == file_classes &&
         static_cast<std::size_t>(outputs.count) == source.size();
}

void ClassRows::take_columns(std::span<const double> from, std::vector<double>& values) const {
  const std::size_t columns = source.size(), rows = values.size() / columns;
  for (std::size_t c = 0; c < columns; ++c) {
    if (!source[c]) continue;
    for (std::size_t r = 0; r < rows; ++r) {
      values[r * columns + c] = from[r * file_classes + *source[c]];
    }
  }
}

namespace {

/// What to do with a file of Keras whose network is not the one here.
constexpr const char* kOwnNetwork =
    "choose the --model that is its network, or write its layers into a model file for --model "
    "FILE.json (src/zoo/README.md, \"A network in a file\")";

/// Whose weights a file has, and what to do about it.
std::string other_model_text(const WeightArrays& file, const WeightMatch& match) {
  const char* rest = "or start training from what fits with --partial";
  const auto name = file.metadata.find("model");
  if (!file.describes_itself() || name == file.metadata.end()) {
    // Dense layers that read another number of inputs are all that does not fit, but for outputs.
    const std::vector<std::string> other_inputs = match.named(Fit::other_inputs);
    const bool other = match.count(Fit::other_shape) + match.count(Fit::missing) > 0;
    if (!other_inputs.empty() && !other && match.extra.empty()) {
      return fmt::format(
          "(the weights of {} fit images of one size alone, which was another); "
          "give the --image-size of their training, {}",
          first_few(other_inputs, 3), rest);
    }
    // With a new head alone most arrays fit.
    if (file.says_layers && 2 * match.count(Fit::whole) < match.rows.size()) {
      return fmt::format("(it holds a network of its own, which this model is not); {}",
                         kOwnNetwork);
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
  fail(ExitCode::data, "weight file {} does not fit the model: {} {}", file.path.string(),
       misfit_text(match), other_model_text(file, match));
}

/// Whether outputs of classes that both have can be taken from an array of the file.
bool has_common_columns(const WeightMatch::Row& row, const ClassRows& rows) {
  return row.fit == Fit::other_outputs &&
         rows.has_columns(row.parameter, row.array->extents.back());
}

/// Why a head of other classes has no output in common with the file's; empty where the shapes say
/// it.
std::string no_column_text(const WeightArrays& file, const WeightMatch& match,
                           const ClassRows& rows) {
  if (match.count(Fit::other_outputs) == 0) return "";
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

void need_some(const WeightArrays& file, const WeightMatch& match, const ClassRows& rows) {
  const bool fits = std::ranges::any_of(match.rows, [&](const WeightMatch::Row& row) {
    return row.fit == Fit::whole || has_common_columns(row, rows);
  });
  if (fits) return;
  fail(ExitCode::data,
       "weight file {} has nothing that fits the model: {}{} (training would start from initial "
       "weights); leave --weights out, or {}",
       file.path.string(), misfit_text(match), no_column_text(file, match, rows),
       file.says_layers ? kOwnNetwork : "choose the --model it was made for");
}

/// Normalization divides by the root of it, so that every answer would be NaN.
void need_no_negative_variance(const std::filesystem::path& path, const std::string& name,
                               const auto& values) {
  if (!name.ends_with("/moving_variance")) return;
  const auto negative = std::ranges::find_if(values, [](double value) { return value < 0; });
  if (negative == values.end()) return;
  fail(ExitCode::data,
       "weight file {}: {} holds {:g}, which no variance can be (every answer would be NaN); use a "
       "file that is not damaged",
       path.string(), name, *negative);
}

/// Values on their way into the arena.
void put(const WeightArrays& file, WeightMatch& match, const compute::Program& program,
         std::size_t parameter, const std::vector<double>& values, const Array& weights) {
  const std::string& name = match.rows[parameter].parameter;
  need_no_negative_variance(file.path, name, values);
  if (!compute::all_numbers(values)) match.nonfinite.push_back(name);
  program.parameters().from_canonical(parameter, values, weights);
}

void load_whole_arrays(const WeightArrays& file, WeightMatch& match,
                       const compute::Program& program, const Array& weights,
                       const ClassRows& rows) {
  for (std::size_t p = 0; p < match.rows.size(); ++p) {
    const WeightMatch::Row& row = match.rows[p];
    if (row.fit != Fit::whole) continue;
    std::vector<double> values = row.array->read();
    if (rows.concerns(row.parameter)) rows.rearrange(row.parameter, values);
    put(file, match, program, p, values, weights);
  }
}

/// Outputs of classes that both have, where the file has more or fewer of them.
void load_common_classes(const WeightArrays& file, WeightMatch& match,
                         const compute::Program& program, const Array& weights,
                         const ClassRows& rows) {
  for (std::size_t p = 0; p < match.rows.size(); ++p) {
    WeightMatch::Row& row = match.rows[p];
    if (!has_common_columns(row, rows)) continue;
    std::vector<double> values = program.parameters().to_canonical(p, weights);
    rows.take_columns(row.array->read(), values);
    put(file, match, program, p, values, weights);
    row.fit = Fit::common_classes;
  }
}

}  // namespace

WeightMatch load_weights(const WeightArrays& file, const compute::Program& program,
                         const Array& weights, const ClassRows& rows) {
  WeightMatch match = match_weights(file, program.layout());
  need_whole(file, match);
  if (!rows.are_equally_many()) {
    refuse_other_classes(file.path, rows.file_classes, rows.outputs.count);
  }
  load_whole_arrays(file, match, program, weights, rows);
  return match;
}

WeightMatch load_fitting_weights(const WeightArrays& file, const compute::Program& program,
                                 const Array& weights, const ClassRows& rows) {
  WeightMatch match = match_weights(file, program.layout());
  need_some(file, match, rows);
  load_whole_arrays(file, match, program, weights, rows);
  load_common_classes(file, match, program, weights, rows);
  return match;
}

bool begins_in_part(const WeightArrays& file, const model::Graph& graph, bool asked) {
  if (asked || file.describes_itself()) return asked;
  const WeightMatch match = match_weights(file, graph);
  const model::ClassOutputs outputs = model::class_outputs(graph);
  return match.extra.empty() && std::ranges::all_of(match.rows, [&](const WeightMatch::Row& row) {
           const bool of_head = row.fit == Fit::missing || row.fit == Fit::other_outputs;
           return row.fit == Fit::whole ||
                  (of_head && std::ranges::count(outputs.arrays, row.parameter) > 0);
         });
}

void check_fits(const WeightArrays& file, const model::Graph& graph, bool asked_for_part,
                const ClassRows& rows) {
  const WeightMatch match = match_weights(file, graph);
  begins_in_part(file, graph, asked_for_part) ? need_some(file, match, rows)
                                              : need_whole(file, match);
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
         "weight file {}: {} has {} and {} has {} (they make the same outputs, so the file is "
         "damaged or put together of two); check --weights",
         file.path.string(), first->name, counted(first->extents.back(), "output"), array->name,
         array->extents.back());
  }
}

model::WeightValues open_weights(WeightArrays arrays, const model::Graph& graph) {
  const auto file = std::make_shared<const WeightArrays>(std::move(arrays));
  check_outputs_agree(*file, model::class_outputs(graph));
  need_whole(*file, match_weights(*file, graph));
  return [file, arrays = file->by_name()](const std::string& parameter) {
    std::vector<float> values = arrays.at(parameter)->floats();
    need_no_negative_variance(file->path, parameter, values);
    return values;
  };
}

}  // namespace cputrain::weights
