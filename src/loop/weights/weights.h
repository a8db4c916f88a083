#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "compute/program.h"
#include "data/exif.h"
#include "data/expand.h"
#include "data/resize.h"
#include "loop/weights/class_rows.h"
#include "loop/weights/weight_match.h"
#include "model/exported_model.h"
#include "system/files.h"

/// Weights between programs, files and initial values.
namespace cputrain::loop {

/// Keras' initial values, f(seed, layer), into the arena.
void initialise_weights(const model::Graph&, const compute::Program&, std::uint64_t seed,
                        const Array& weights);

/// 64-bit hash of all parameters as float32 in canonical layout and model order, without padding:
/// 16 hexadecimal digits.
std::string weights_hash(const compute::Program&, const Array& weights);

/// The data of a training, as far as `eval` must know it: what the training learnt from and what it
/// kept from learning follow from it, the seed and the size of the validation part. Limits are not
/// needed, since they only leave out samples of either part.
struct TrainingData {
  std::uint64_t fingerprint = 0;  ///< Dataset::fingerprint(), with images turned as they were
  data::Expand expand = data::Expand::none;
  std::uint64_t place = 0;  ///< a hash of where it lay; 0 where it is no file or folder
  /// Fingerprints of what earlier trainings learnt from, whose weights this one began with.
  std::vector<std::uint64_t> earlier{};
};

/// What a weight file says about itself, so that eval and predict need no other word.
struct ModelDescription {
  std::string model;                 ///< "dogcat"
  std::vector<std::string> classes;  ///< by label
  model::Graph graph;                ///< with the image's size and scale
  std::uint64_t seed = 0;            ///< the training's, which also chose the validation part
  double validation_split = 0;       ///< how large that was, where the data had none of its own
  data::Resizing resize{};           ///< how images came to the input's size
  /// Whether photographs were turned by it. Files of earlier versions do not say: ignored.
  data::Exif exif = data::Exif::ignore;
  std::string kernels{};               ///< a reproducible training's: Backend::kernels()
  std::optional<TrainingData> data{};  ///< files of earlier versions do not say
};

/// The description as a weight file's metadata.
model::safetensors::Metadata weights_metadata(const ModelDescription&);

/// The same of a file with PyTorch's names and layout.
void mark_as_torch(model::safetensors::Metadata&);

/// weights.safetensors in Keras' names and layout. Error(output).
void save_weights(const std::filesystem::path&, const ModelDescription&, const compute::Program&,
                  const Array& weights, system::Durability = system::Durability::disk);

/// Error(data) where the file is damaged or does not describe a model.
ModelDescription read_description(const std::filesystem::path&);

/// What was read of a weight file.
struct LoadedWeights {
  WeightMatch match;
  std::vector<std::string> by_class{};  ///< arrays of which the outputs of common classes were read
  std::vector<std::string> nonfinite{};  ///< arrays that hold NaN or infinity
};

/// Error(data) where the arrays that make the outputs are of different numbers of them.
void check_outputs_agree(const model::WeightArrays&, const model::ClassOutputs&);

/// Fills the arena by name, what makes the outputs as `rows` says. Error(data) says what is
/// missing, has another shape or belongs to no parameter, the first few of each; or that the file
/// names more or fewer classes than its outputs speak of, or holds a negative variance.
LoadedWeights load_weights(const model::WeightArrays&, const compute::Program&,
                           const Array& weights, const ClassRows& rows = {});

/// Fills what fits by name and shape, for fine-tuning with another head, and leaves the rest as it
/// is. Where the file has more or fewer classes, outputs of those that both have fit, too. An array
/// with as many columns as there are classes here is none of the file's outputs then, and taken as
/// it is. Error(data) where nothing fits.
LoadedWeights load_fitting_weights(const model::WeightArrays&, const compute::Program&,
                                   const Array& weights, const ClassRows& rows = {});

/// Whether everything of the network is there and nothing else, but for what makes the outputs:
/// those may be of other classes, or missing.
bool fits_but_for_outputs(const model::WeightArrays&, const compute::Program&,
                          const model::ClassOutputs&);

/// "weight file W: 2 of 14 parameter arrays hold NaN or infinity: a/kernel, a/bias"; empty where
/// there is none.
std::string nonfinite_text(const std::filesystem::path&, const std::vector<std::string>& arrays,
                           std::size_t of);

/// A training that left its weights in a file.
struct PastTraining {
  TrainingData data;
  std::uint64_t seed;
  double validation_split;
};
/// Nothing where the file does not say. Error(data).
std::optional<PastTraining> past_training(const model::WeightArrays&);

/// Names of the classes by output; empty where the file does not say. Error(data).
std::vector<std::string> classes_of_weights(const model::WeightArrays&);

/// How the network of the file makes numbers of pixels; nothing where the file does not say.
/// Error(data).
std::optional<model::Input> input_of_weights(const model::WeightArrays&);

/// How images came to its input's size; nothing where the file does not say. Error(data).
std::optional<data::Resizing> resizing_of_weights(const model::WeightArrays&);

/// The kernels of the reproducible training that wrote the file; empty for any other.
std::string kernels_of(const model::WeightArrays&);

/// Numbers of a file that holds exactly the graph's parameters, for export. Error(data) as above.
model::WeightValues open_weights(model::WeightArrays, const model::Graph&);

}  // namespace cputrain::loop
