#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/classes/alike_names.h"
#include "weights/weight_file.h"

namespace cputrain::weights {

/// What becomes of a parameter of a network beside the arrays of a weight file.
enum class Fit {
  whole,           ///< there is an array of its shape
  common_classes,  ///< taken: the outputs of the classes that both have
  other_outputs,   ///< of another shape: in the last extent alone, as outputs of other classes are
  other_inputs,    ///< in the first of two alone: a dense layer behind images of another size
  other_shape,
  missing
};

/// The table of a network's parameters beside the arrays of a weight file, by name and shape.
struct WeightMatch {
  struct Row {
    std::string parameter;
    std::vector<int> extents{};          ///< canonical
    std::optional<StoredArray> array{};  ///< nothing where the file has none of its name
    Fit fit = Fit::missing;

    bool is_taken() const { return fit == Fit::whole || fit == Fit::common_classes; }
  };

  std::vector<Row> rows{};               ///< in the network's order
  std::vector<StoredArray> extra{};      ///< arrays that are no parameter's
  std::vector<std::string> nonfinite{};  ///< once loaded: parameters that hold NaN or infinity

  std::size_t count(Fit) const;
  std::vector<std::string> named(Fit) const;
  bool whole() const;
  bool takes(const std::string& parameter) const;
};

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

/// "158 of 160 parameter arrays are those of FILE (PyTorch's layout, torchvision's names; 54
/// rearranged); not taken: ..." for a match that was loaded.
std::string taken_text(const WeightArrays&, const WeightMatch&, const ClassMatch&,
                       const std::string& file);

/// The same as CSV: a row for each parameter, then one for each array of the file that is none;
/// what was done with each.
std::string taken_table(const WeightArrays&, const WeightMatch&);

}  // namespace cputrain::weights
