#pragma once

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"
#include "weights/keras_arrays.h"

namespace cputrain::weights {

/// A Keras file in the making: numbers of each array count on from those of the one before.
class MadeKeras : public ::testing::Test {
 protected:
  using Extents = std::vector<std::size_t>;

  void array(const std::string& path, Extents extents) {
    std::size_t count = 1;
    for (const std::size_t extent : extents) count *= extent;
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), next_);
    next_ += static_cast<float>(count);
    values_[path] = values;
    tensors_.push_back({path, std::move(extents), [values] { return values; }});
  }
  /// A layer of Keras 3.
  void layer(const std::string& group, const std::string& name,
             const std::vector<Extents>& arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      array(group + "/vars/" + std::to_string(i), arrays[i]);
    }
    if (!name.empty()) texts_.attributes[group + "/vars"]["name"] = {name};
  }
  /// A layer of the older form.
  void listed(const std::string& group, const std::vector<std::string>& names,
              const std::vector<Extents>& arrays) {
    for (std::size_t i = 0; i < arrays.size(); ++i) array(group + "/" + names[i], arrays[i]);
    texts_.attributes[group]["weight_names"] = names;
  }

  WeightArrays read(const model::Graph& graph, const std::vector<ModuleNames>& names = {}) {
    const auto path = folder_.path() / "w.safetensors";
    safetensors::write(path, to_metadata(texts_), tensors_);
    const TensorFile file = safetensors::open(path);
    return keras_arrays({"w.keras", file, keras_texts(file.metadata())}, graph, names);
  }
  std::string refusal(const model::Graph& graph) {
    return testing::refusal_of(ExitCode::data, [&] { read(graph); });
  }
  void expect_taken(const WeightArrays& arrays, const std::string& name, const std::string& path) {
    const StoredArray* found = arrays.find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->file_name, path);
    EXPECT_EQ(found->floats(), values_.at(path)) << name;
  }

  KerasTexts texts_;

 private:
  testing::TemporaryFolder folder_;
  std::vector<safetensors::OutTensor> tensors_;
  std::map<std::string, std::vector<float>> values_;
  float next_ = 0;
};

}  // namespace cputrain::weights
