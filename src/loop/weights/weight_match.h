#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/weights/weight_arrays.h"

namespace cputrain::loop {

/// "3x3x64x128"; "a single number" for a scalar.
std::string extents_text(std::span<const std::size_t>);
std::string extents_text(std::span<const int>);

/// A parameter that a model wants: its name and canonical extents.
struct WantedParameter {
  std::string name;
  std::vector<int> extents;
};

/// How the tensors of a weight file fit the parameters of a model, by name and shape.
struct WeightMatch {
  std::vector<std::size_t> fitting;      ///< positions of the wanted ones
  std::vector<std::string> missing;      ///< names that the file lacks
  std::vector<std::string> other_shape;  ///< "dense/kernel is 144x3, not 144x4"
  std::vector<std::string> extra;        ///< names that the model lacks

  /// Arrays whose shapes differ in the last extent alone, as those of the outputs of other classes
  /// do.
  struct OtherColumns {
    std::size_t position;  ///< the wanted one's
    std::string text;      ///< as in other_shape
  };
  std::vector<OtherColumns> other_columns{};
  /// Those of `other_shape` whose shapes differ in the first of two extents alone: dense layers
  /// that read another number of inputs, as behind a Flatten of images of another size.
  std::vector<std::string> other_rows{};

  /// Whether dense layers that read another number of inputs are all that does not fit, but for
  /// outputs of other classes.
  bool differs_in_inputs() const {
    return !other_rows.empty() && other_rows.size() == other_shape.size() && missing.empty() &&
           extra.empty();
  }
  bool whole() const {
    return missing.empty() && other_shape.empty() && other_columns.empty() && extra.empty();
  }
};

WeightMatch match_weights(const model::WeightArrays&, std::span<const WantedParameter>);

/// What does not fit, the first few of each kind: "2 missing (a, b); 1 of another shape
/// (dense/kernel is 144x3, not 144x4); 9 not in the model (c, d, e, ...)".
std::string misfit_text(const WeightMatch&);

}  // namespace cputrain::loop
