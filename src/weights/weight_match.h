#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/classes/alike_names.h"
#include "model/layer_patterns.h"
#include "weights/weight_file.h"

namespace cputrain::weights {

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

WeightMatch match_weights(const WeightArrays&, std::span<const WantedParameter>);

/// What does not fit, the first few of each kind: "2 missing (a, b); 1 of another shape
/// (dense/kernel is 144x3, not 144x4); 9 not in the model (c, d, e, ...)".
std::string misfit_text(const WeightMatch&);

/// Classes of a weight file and of the data that a training goes on with, put together by name.
struct ClassMatch {
  /// By class of the data: the class of the file whose output it begins with; nothing: none. Of
  /// equally many classes, those without one of their name take what is left: first that of their
  /// own place, then in order.
  std::vector<std::optional<std::size_t>> source;
  std::size_t by_name = 0;          ///< classes that both have
  std::vector<std::size_t> others;  ///< classes of the data whose source has another name
  data::NameMatch names{};          ///< those that look alike are found, too

  /// Whether some class begins with the output of another place.
  bool moves() const;
};

/// Classes of the data from `named` on got names from --classes ("class 7"), which stand for any
/// class: they are in no `others`. A file does not say which of its names are such: those that
/// read like them count as such.
ClassMatch match_classes(std::span<const std::string> classes, std::span<const std::string> file,
                         std::size_t named);

/// How the arrays that make the outputs are filled from those of a file.
struct ClassRows {
  model::ClassOutputs outputs{};
  std::vector<std::optional<std::size_t>> source{};  ///< empty: every output from its own place
  std::size_t file_classes = 0;

  bool concerns(const std::string& array) const;
  /// Whether some class here has an output in the file.
  bool has_common() const;
  /// Whether the file names as many classes as there are here. An array of this network's shape is
  /// filled by its names only then: else they are not those of its columns.
  bool are_equally_many() const { return file_classes == source.size(); }
  /// The values of an array of the network's shape; as they are where the file has more or fewer
  /// classes.
  void rearrange(const std::string& array, std::vector<double>& values) const;
  /// Whether outputs of common classes can be read from an array of so many columns into one of the
  /// network's: one output that speaks for two classes is no column of either.
  bool has_columns(const std::string& array, std::size_t file_columns) const;
  /// Puts these columns into the network's own values.
  void take_columns(std::span<const double> from, std::vector<double>& values) const;
};

}  // namespace cputrain::weights
