#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "compute/program.h"
#include "core/files.h"
#include "data/resize.h"
#include "model/exported_model.h"
#include "train/weight_match.h"

/// Weights between programs, files and initial values.
namespace cputrain {

/// Keras' initial values, f(seed, layer), into the arena.
void initialise_weights(const Graph&, const Program&, std::uint64_t seed, const Array& weights);

/// 64-bit hash of all parameters as float32 in canonical layout and model order, without padding:
/// 16 hexadecimal digits.
std::string weights_hash(const Program&, const Array& weights);

/// What a weight file says about itself, so that eval and predict need no other word.
struct ModelDescription {
  std::string model;                 ///< "dogcat"
  std::vector<std::string> classes;  ///< by label
  Graph graph;                       ///< with the picture's size and scale
  std::uint64_t seed = 0;            ///< of the training, which also chose the validation part
  double validation_split = 0;       ///< how large that was, where the data had none of its own
  Resize resize = Resize::bilinear;  ///< how pictures came to the input's size
  std::string kernels{};             ///< of a reproducible training: Backend::kernels()
};

/// The description as a weight file's metadata.
safetensors::Metadata weights_metadata(const ModelDescription&);

/// weights.safetensors in Keras' names and layout. Error(output).
void save_weights(const std::filesystem::path&, const ModelDescription&, const Program&,
                  const Array& weights, Durability = Durability::disk);

/// Error(data) where the file is damaged or does not describe a model.
ModelDescription read_description(const std::filesystem::path&);

/// Fills the arena by name. Error(data) says what is missing, has another shape or belongs to no
/// parameter, the first few of each.
void load_weights(const std::filesystem::path&, const Program&, const Array& weights);

/// Fills what fits by name and shape, for fine-tuning with another head, and leaves the rest as it
/// is; returns what fitted. Error(data) where nothing does.
WeightMatch load_fitting_weights(const std::filesystem::path&, const Program&,
                                 const Array& weights);

/// The kernels of the reproducible training that wrote the file; empty for any other. Error(data).
std::string kernels_of(const std::filesystem::path&);

/// Opens a file that holds exactly the graph's parameters, for export. Error(data) as above.
WeightValues open_weights(const std::filesystem::path&, const Graph&);

}  // namespace cputrain
