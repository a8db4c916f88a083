#include "model/weights/open_arrays.h"

#include "model/weights/torch_arrays.h"
#include "model/weights/weight_format.h"

namespace cputrain::model {

WeightArrays open_arrays(const std::filesystem::path& path, const Graph& graph,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         Otherwise otherwise) {
  switch (weight_format(path)) {
    case WeightFormat::pickle:
      refuse_pickle(path);
    case WeightFormat::hdf5:
    case WeightFormat::keras:
      return keras_arrays(read_keras(path), graph, names, otherwise);
    case WeightFormat::safetensors:
      break;
  }
  return arrays_for(safetensors::File(path), graph, names);
}

}  // namespace cputrain::model
