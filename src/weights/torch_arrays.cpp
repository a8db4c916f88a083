#include "weights/torch_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "model/layer_patterns.h"
#include "weights/torch_layout.h"

namespace cputrain::weights {
namespace {

using Parameters = std::vector<TorchParameter>;

/// A counter that PyTorch's batch normalization keeps beside its statistics.
constexpr std::string_view kCounter = "num_batches_tracked";

using Places = std::vector<const safetensors::TensorInfo*>;

/// One way to name the parameters of a network in a file.
struct Naming {
  std::string source;              ///< whose, for people
  std::vector<std::string> names;  ///< by parameter; empty where it has none
};

Naming our_naming(const model::Graph& graph) {
  Naming naming{"own names", {}};
  for (const model::Graph::Node& node : graph.nodes()) {
    for (const model::ParameterSpec& spec : node.parameters) naming.names.push_back(spec.name);
  }
  return naming;
}

template <class ModuleOf>
Naming torch_naming(std::string source, const Parameters& parameters, const ModuleOf& module_of) {
  Naming naming{std::move(source), {}};
  for (const TorchParameter& parameter : parameters) {
    const std::optional<std::string> module = module_of(parameter.layer);
    naming.names.push_back(module ? *module + "." + parameter.word : "");
  }
  return naming;
}

/// The tensors of the parameters under some names, behind a beginning ("module.").
struct Found {
  std::string source, beginning;
  Places tensors;  ///< by parameter; null: not there
  std::ptrdiff_t count = 0;
  std::string twice{};  ///< "a.fc.bias and b.fc.bias", where either may be meant
};

Found found_behind(const safetensors::File& file, const Naming& naming, std::string beginning) {
  Found found{naming.source, std::move(beginning), {}};
  for (const std::string& name : naming.names) {
    found.tensors.push_back(name.empty() ? nullptr : file.find(found.beginning + name));
    if (found.tensors.back()) ++found.count;
  }
  return found;
}

/// What stands before the network's names in the file, up to a point or a slash, and how many of
/// them stand behind it.
std::map<std::string_view, std::ptrdiff_t> beginnings(const safetensors::File& file,
                                                      const Naming& naming) {
  const std::set<std::string_view> names(naming.names.begin(), naming.names.end());
  std::size_t longest = 0;
  for (const std::string_view name : names) longest = std::max(longest, name.size());
  std::map<std::string_view, std::ptrdiff_t> counts;
  for (const safetensors::TensorInfo& tensor : file.tensors()) {
    const std::string_view name = tensor.name;
    for (std::size_t length = 1; length <= std::min(longest, name.size()); ++length) {
      const std::string_view before = name.substr(0, name.size() - length);
      const bool whole_words = before.empty() || before.ends_with('.') || before.ends_with('/');
      if (whole_words && names.contains(name.substr(before.size()))) ++counts[before];
    }
  }
  return counts;
}

/// Whether every parameter has a tensor, but for those of the outputs: a head may be new.
bool is_whole_but_for_outputs(const Found& found, const model::Graph& graph) {
  const std::vector<std::string> names = our_naming(graph).names;
  const std::vector<std::string> outputs = model::class_outputs(graph).arrays;
  for (std::size_t p = 0; p < names.size(); ++p) {
    if (!found.tensors[p] && std::ranges::count(outputs, names[p]) == 0) return false;
  }
  return true;
}

void note_twice(Found& found, const Places& others) {
  for (std::size_t p = 0; p < others.size(); ++p) {
    if (!found.tensors[p] || !others[p]) continue;
    found.twice = printable(found.tensors[p]->name) + " and " + printable(others[p]->name);
  }
}

/// A beginning is left out where all names of the file have it, or all that the network needs.
/// What stands without it is taken, too, such as a head on a network within another one.
Found find_most(const safetensors::File& file, const model::Graph& graph, const Naming& naming) {
  const Found plain = found_behind(file, naming, "");
  const std::size_t outputs = model::class_outputs(graph).arrays.size();
  Found best = plain;
  for (const auto& [beginning, count] : beginnings(file, naming)) {
    if (beginning.empty() || count < best.count) continue;
    const bool of_all = std::ranges::all_of(
        file.tensors(), [&](const auto& tensor) { return tensor.name.starts_with(beginning); });
    if (!of_all && static_cast<std::size_t>(count) + outputs < naming.names.size()) continue;
    Found found = found_behind(file, naming, std::string(beginning));
    if (!of_all && !is_whole_but_for_outputs(found, graph)) continue;
    if (found.count > best.count) {
      best = std::move(found);
    } else if (!best.beginning.empty()) {
      note_twice(best, found.tensors);
    }
  }
  if (best.beginning.empty()) return best;
  note_twice(best, plain.tensors);
  for (std::size_t p = 0; p < plain.tensors.size(); ++p) {
    if (!best.tensors[p]) best.tensors[p] = plain.tensors[p];
  }
  return best;
}

Found find_most(const safetensors::File& file, const model::Graph& graph,
                const Parameters& parameters, std::span<const ModuleNames> names) {
  Found best = find_most(file, graph, torch_naming("own names", parameters, [](const auto& layer) {
                           return std::optional(layer);
                         }));
  for (const ModuleNames& one : names) {
    Found found =
        find_most(file, graph,
                  torch_naming(one.source + "'s names", parameters,
                               [&](const std::string& layer) { return one.module(layer); }));
    if (found.count > best.count) best = std::move(found);
  }
  return best;
}

/// Whose layout it is, and what its names are, for people. Error(data) where that is not certain.
std::string origin_of(const safetensors::File& file, const char* layout, const Found& found) {
  if (!found.twice.empty()) {
    fail(ExitCode::data, fmt::format("weight file {} holds {} (either may be the one that is meant)"
                                     "; write a file with one of them",
                                     file.path().string(), found.twice));
  }
  return fmt::format(
      "{} layout, {}{}", layout, found.count ? found.source : "unknown names",
      found.beginning.empty() ? "" : fmt::format(" behind {}", printable(found.beginning)));
}

/// Those of a file with our layout.
WeightArrays our_arrays(const safetensors::File& file, const Found& found) {
  if (found.beginning.empty()) return file;
  const std::string origin = origin_of(file, "Keras'", found);
  std::vector<StoredArray> arrays = WeightArrays(file).arrays();
  for (StoredArray& array : arrays) {
    if (array.name.starts_with(found.beginning)) array.name.erase(0, found.beginning.size());
  }
  return {file.path(), file.metadata(), origin, std::move(arrays)};
}

/// Shapes of a fully connected layer that is written as a convolution with a kernel of one pixel.
std::vector<std::size_t> without_pixel(std::vector<std::size_t> extents, std::size_t wanted) {
  if (wanted == 2 && extents.size() == 4 && extents[2] == 1 && extents[3] == 1) extents.resize(2);
  return extents;
}

StoredArray stored(const std::shared_ptr<const safetensors::File>& file,
                   const safetensors::TensorInfo& tensor, const TorchParameter& parameter) {
  const std::vector<std::size_t> canonical =
      canonical_extents(without_pixel(tensor.extents, parameter.extents.size()));
  return {.name = parameter.name,
          .extents = canonical,
          .file_name = tensor.name,
          .file_extents = tensor.extents,
          .rearranged = canonical.size() > 1 || !std::ranges::is_sorted(*parameter.inputs),
          .floats = [file, &tensor, parameter, canonical] {
            return from_torch(parameter, canonical, file->read_floats(tensor));
          }};
}

/// One that is no parameter's, as it is.
StoredArray left(const safetensors::TensorInfo& tensor) {
  return {.name = tensor.name,
          .extents = tensor.extents,
          .file_name = tensor.name,
          .file_extents = tensor.extents,
          .floats = {}};
}

}  // namespace

WeightArrays arrays_for(const safetensors::File& opened, const model::Graph& graph,
                        std::span<const ModuleNames> names) {
  const auto layout = opened.metadata().find("layout");
  const bool says = layout != opened.metadata().end();
  if (!says || layout->second != "torch") {
    const Found found = find_most(opened, graph, our_naming(graph));
    if (says || found.count > 0) return our_arrays(opened, found);
  }
  const auto file = std::make_shared<const safetensors::File>(opened);
  const Parameters parameters = torch_parameters(graph);
  const Found found = find_most(*file, graph, parameters, names);
  const std::string origin = origin_of(*file, "PyTorch's", found);
  std::vector<StoredArray> arrays;
  std::set<const safetensors::TensorInfo*> taken;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (!found.tensors[p]) continue;
    arrays.push_back(stored(file, *found.tensors[p], parameters[p]));
    taken.insert(found.tensors[p]);
  }
  std::vector<std::string> ignored;
  for (const safetensors::TensorInfo& tensor : file->tensors()) {
    if (taken.contains(&tensor)) continue;
    if (tensor.name.ends_with(kCounter)) {
      ignored.push_back(tensor.name);
    } else {
      arrays.push_back(left(tensor));
    }
  }
  return {file->path(), file->metadata(), origin, std::move(arrays), std::move(ignored)};
}

}  // namespace cputrain::weights
