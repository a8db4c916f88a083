#include "training/weights/first_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/csv.h"
#include "core/text.h"

namespace cputrain::training {
namespace {

std::string row(const std::string& parameter, const std::string& shape, const std::string& array,
                const std::string& array_shape, const std::string& done) {
  return fmt::format("{},{},{},{},{}\r\n", csv_cell(parameter), shape, csv_cell(printable(array)),
                     array_shape, done);
}

bool is_by_class(const weights::LoadedWeights& loaded, const std::string& name) {
  return std::ranges::find(loaded.by_class, name) != loaded.by_class.end();
}

/// How many of the arrays that fit lie otherwise in the file.
std::ptrdiff_t rearranged(const weights::WeightArrays& file, const weights::LoadedWeights& loaded,
                          const compute::ParameterLayout& layout) {
  return std::ranges::count_if(loaded.match.fitting, [&](std::size_t p) {
    return file.find(layout.parameters[p].name)->rearranged;
  });
}

}  // namespace

std::string taken_text(const weights::WeightArrays& file, const weights::LoadedWeights& loaded,
                       const weights::ClassMatch& classes, const compute::ParameterLayout& layout,
                       const std::string& name) {
  const weights::WeightMatch& match = loaded.match;
  std::string text = fmt::format("{} of {} parameter arrays are those of {}", match.fitting.size(),
                                 layout.parameters.size(), name);
  if (!file.origin().empty()) {
    text += fmt::format(" ({}; {} rearranged)", file.origin(), rearranged(file, loaded, layout));
  }
  if (!loaded.by_class.empty()) {
    text += fmt::format("; of {} the outputs of {} that both know", first_few(loaded.by_class),
                        counted(classes.by_name, "class"));
  }
  if (!match.whole()) text += "; left: " + weights::misfit_text(match);
  if (!file.ignored().empty()) {
    text +=
        fmt::format("; not needed: {} without weights", counted(file.ignored().size(), "array"));
  }
  return text;
}

std::string taken_table(const weights::WeightArrays& file, const weights::LoadedWeights& loaded,
                        const compute::ParameterLayout& layout) {
  std::string table = "parameter,shape,array,array_shape,done\r\n";
  const auto& fitting = loaded.match.fitting;
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const compute::Parameter& parameter = layout.parameters[p];
    const weights::StoredArray* array = file.find(parameter.name);
    const bool fits = std::ranges::find(fitting, p) != fitting.end();
    const char* done = !array                                ? "not in the file"
                       : is_by_class(loaded, parameter.name) ? "outputs of common classes"
                       : !fits                               ? "left: another shape"
                       : array->rearranged                   ? "rearranged"
                                                             : "taken";
    table +=
        row(parameter.name, weights::extents_text(parameter.extents), array ? array->file_name : "",
            array ? weights::extents_text(array->file_extents) : "", done);
  }
  for (const weights::StoredArray& array : file.arrays()) {
    const bool known = std::ranges::any_of(
        layout.parameters, [&](const auto& parameter) { return parameter.name == array.name; });
    if (known) continue;
    table +=
        row("", "", array.file_name, weights::extents_text(array.file_extents), "not in the model");
  }
  for (const std::string& name : file.ignored()) table += row("", "", name, "", "not needed");
  return table;
}

}  // namespace cputrain::training
