#include "model/weights/torch_arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "core/text.h"
#include "model/torch_layout.h"

namespace cputrain::model {
namespace {

using Parameters = std::vector<TorchParameter>;

/// A counter that PyTorch's batch normalization keeps beside its statistics.
constexpr std::string_view kCounter = "num_batches_tracked";

bool is_torch(const safetensors::File& file, const Graph& graph) {
  const auto layout = file.metadata().find("layout");
  if (layout != file.metadata().end()) return layout->second == "torch";
  return std::ranges::none_of(graph.nodes(), [&](const Graph::Node& node) {
    return std::ranges::any_of(node.parameters,
                               [&](const ParameterSpec& spec) { return file.find(spec.name); });
  });
}

/// "model." where all names begin with it; whole words between dots.
std::string common_beginning(const std::vector<safetensors::TensorInfo>& tensors) {
  if (tensors.empty()) return "";
  std::string_view common = tensors.front().name;
  for (const safetensors::TensorInfo& tensor : tensors) {
    const auto end = std::ranges::mismatch(common, tensor.name).in1;
    common = common.substr(0, static_cast<std::size_t>(end - common.begin()));
  }
  const std::size_t dot = common.rfind('.');
  return dot == std::string_view::npos ? "" : std::string(common.substr(0, dot + 1));
}

/// The tensors of the parameters under some names, and how many there are.
struct Found {
  std::string source;
  std::vector<const safetensors::TensorInfo*> tensors;  ///< by parameter; null: not there
  std::ptrdiff_t count = 0;
};

template <class ModuleOf>
Found find_all(const safetensors::File& file, const Parameters& parameters,
               const std::string& beginning, std::string source, const ModuleOf& module_of) {
  Found found{std::move(source), {}};
  for (const TorchParameter& parameter : parameters) {
    const auto module = module_of(parameter.layer);
    found.tensors.push_back(module ? file.find(beginning + *module + "." + parameter.word)
                                   : nullptr);
  }
  found.count =
      std::ranges::count_if(found.tensors, [](const auto* tensor) { return tensor != nullptr; });
  return found;
}

Found find_most(const safetensors::File& file, const Parameters& parameters,
                std::span<const ModuleNames> names) {
  Found best;
  std::set<std::string> beginnings{"", common_beginning(file.tensors())};
  for (const std::string& beginning : beginnings) {
    const auto consider = [&](std::string source, const auto& module_of) {
      Found found = find_all(file, parameters, beginning, std::move(source), module_of);
      if (best.tensors.empty() || found.count > best.count) best = std::move(found);
    };
    consider("own names", [](const std::string& layer) { return std::optional(layer); });
    for (const ModuleNames& one : names) {
      consider(one.source + "'s names",
               [&](const std::string& layer) { return one.module(layer); });
    }
  }
  return best;
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

WeightArrays arrays_for(const safetensors::File& opened, const Graph& graph,
                        std::span<const ModuleNames> names) {
  if (!is_torch(opened, graph)) return opened;
  const Parameters parameters = torch_parameters(graph);
  const auto file = std::make_shared<const safetensors::File>(opened);
  const Found found = find_most(*file, parameters, names);
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
  return {file->path(), file->metadata(),
          fmt::format("PyTorch's layout, {}", found.count ? found.source : "unknown names"),
          std::move(arrays), std::move(ignored)};
}

}  // namespace cputrain::model
