#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compute/program.h"
#include "model/exported_model.h"
#include "model/layer_patterns.h"
#include "system/files.h"
#include "weights/weight_file.h"
#include "weights/weight_match.h"

/// Weights between programs, files and initial values.
namespace cputrain::weights {

struct ModelDescription;

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

/// Keras' initial values, f(seed, layer), into the arena.
void initialise_weights(const model::Graph&, const compute::Program&, std::uint64_t seed,
                        const Array& weights);

/// 64-bit hash of all parameters as float32 in canonical layout and model order, without padding:
/// 16 hexadecimal digits.
std::string weights_hash(const compute::Program&, const Array& weights);

/// weights.safetensors in Keras' names and layout. Error(output).
void save_weights(const std::filesystem::path&, const ModelDescription&, const compute::Program&,
                  const Array& weights, system::Durability = system::Durability::disk);

/// Error(data) where the arrays that make the outputs are of different numbers of them.
void check_outputs_agree(const WeightArrays&, const model::ClassOutputs&);

/// Fills the arena by name, what makes the outputs as `rows` says. Error(data) says what is
/// missing, has another shape or belongs to no parameter, the first few of each; or that the file
/// names more or fewer classes than its outputs speak of, or holds a negative variance.
WeightMatch load_weights(const WeightArrays&, const compute::Program&, const Array& weights,
                         const ClassRows& rows = {});

/// Fills what fits by name and shape, for fine-tuning with another head, and leaves the rest as it
/// is. Where the file has more or fewer classes, outputs of those that both have fit, too. An array
/// with as many columns as there are classes here is none of the file's outputs then, and taken as
/// it is. Error(data) where nothing fits, and no output either.
WeightMatch load_fitting_weights(const WeightArrays&, const compute::Program&, const Array& weights,
                                 const ClassRows& rows = {});

/// Whether a training begins with what fits of a file alone: where `asked` for, and where the file
/// does not name its network and everything fits but for what makes the outputs. It may have those
/// of any classes, and a head is what is to be learnt.
bool begins_in_part(const WeightArrays&, const model::Graph&, bool asked);

/// Before a program is made: Error(data) where loading would find that the file does not fit the
/// network. For a training that begins in part something has to, such as the output of a class that
/// both have.
void check_fits(const WeightArrays&, const model::Graph&, bool asked_for_part,
                const ClassRows& rows = {});

/// "weight file W: 2 of 14 parameter arrays hold NaN or infinity: a/kernel, a/bias"; empty where
/// there is none.
std::string nonfinite_text(const std::filesystem::path&, const std::vector<std::string>& arrays,
                           std::size_t of);

/// Numbers of a file that holds exactly the graph's parameters, for export. Error(data) as above.
model::WeightValues open_weights(WeightArrays, const model::Graph&);

}  // namespace cputrain::weights
