#include "model/weights/weight_arrays.h"

#include <utility>

namespace cputrain::model {
namespace {

std::vector<StoredArray> own_arrays(const safetensors::File& file) {
  const auto shared = std::make_shared<const safetensors::File>(file);
  std::vector<StoredArray> arrays;
  for (const safetensors::TensorInfo& tensor : shared->tensors()) {
    arrays.push_back({.name = tensor.name,
                      .extents = tensor.extents,
                      .file_name = tensor.name,
                      .file_extents = tensor.extents,
                      .floats = [shared, &tensor] { return shared->read_floats(tensor); },
                      .doubles = [shared, &tensor] { return shared->read(tensor); }});
  }
  return arrays;
}

}  // namespace

std::vector<double> StoredArray::read() const {
  if (doubles) return doubles();
  const std::vector<float> values = floats();
  return {values.begin(), values.end()};
}

WeightArrays::WeightArrays(const safetensors::File& file)
    : WeightArrays(file.path(), file.metadata(), "", own_arrays(file)) {}

WeightArrays::WeightArrays(std::filesystem::path path, safetensors::Metadata metadata,
                           std::string origin, std::vector<StoredArray> arrays,
                           std::vector<std::string> ignored, std::string caveat)
    : path_(std::move(path)),
      metadata_(std::move(metadata)),
      origin_(std::move(origin)),
      caveat_(std::move(caveat)),
      arrays_(std::move(arrays)),
      ignored_(std::move(ignored)) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (arrays_[i].floats) places_[arrays_[i].name] = i;  // others are told of, and not read
  }
}

const StoredArray* WeightArrays::find(const std::string& name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &arrays_[found->second];
}

}  // namespace cputrain::model
