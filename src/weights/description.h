#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "data/resize.h"
#include "model/graph.h"
#include "weights/safetensors.h"
#include "weights/weight_file.h"

/// What a weight file says about itself, written and read.
namespace cputrain::weights {

/// The data of a training, as far as `eval` must know it: what the training learnt from and what it
/// kept from learning follow from it, the seed and the size of the validation part. Limits are not
/// needed, since they only leave out samples of either part.
struct TrainingData {
  std::uint64_t fingerprint = 0;  ///< Dataset::fingerprint(), with images turned as they were
  data::Expand expand = data::Expand::none;
  std::uint64_t place = 0;  ///< a hash of where it lay; 0 where it is no file or folder
  /// Fingerprints of what earlier trainings learnt from, whose weights this one began with, and the
  /// places where that lay.
  std::vector<std::uint64_t> earlier{}, earlier_places{};
  std::uint64_t origin = 0;  ///< Dataset::origin()
  /// Some images that it learnt from, and earlier ones: hashes of their names with their classes,
  /// and of their bytes.
  std::vector<std::uint64_t> image_names{}, image_contents{};
  /// Whether cameras may have turned its images, so that --exif means something.
  bool photographs = true;
};

/// What a weight file says about itself, so that eval and predict need no other word.
struct ModelDescription {
  std::string model;                     ///< "dogcat"
  std::vector<std::string> classes;      ///< by label
  model::Graph graph;                    ///< with the image's size and scale
  std::uint64_t seed = 0;                ///< the training's, which also chose the validation part
  double validation_split = 0;           ///< how large that was, where the data had none of its own
  data::Resizing resize{};               ///< how images came to the input's size
  data::Exif exif = data::Exif::ignore;  ///< whether photographs were turned by it
  std::string kernels{};                 ///< a reproducible training's: Backend::kernels()
  std::optional<TrainingData> data{};    ///< unknown of imported weights
};

/// The description as a weight file's metadata.
safetensors::Metadata weights_metadata(const ModelDescription&);

/// The same of a file with PyTorch's names and layout.
void mark_as_torch(safetensors::Metadata&);

/// Whether a file, of any program, says which network it is of. Error(data).
bool describes_itself(const std::filesystem::path&);

/// Error(data) where the file is damaged or does not describe a model.
ModelDescription read_description(const std::filesystem::path&);

/// A training that left its weights in a file.
struct PastTraining {
  TrainingData data;
  std::uint64_t seed;
  double validation_split;
};
/// Nothing where the file does not say. Error(data).
std::optional<PastTraining> past_training(const WeightArrays&);

/// Names of the classes by output; empty where the file does not say. Error(data).
std::vector<std::string> classes_of_weights(const WeightArrays&);

/// What is done to images before a network sees them. A member is nothing where it is not known or
/// changes nothing.
struct Preprocessing {
  std::optional<Shape> image{};
  std::optional<model::Input> pixels{};
  std::optional<data::Resizing> resize{};
  std::optional<data::Exif> exif{};
  bool packed = false;  ///< a file has the images resized and turned already
};

/// What was done to the images that weights learnt from, as far as their file says. Error(data).
Preprocessing preprocessing_of(const ModelDescription&);
Preprocessing preprocessing_of(const WeightArrays&);

/// The kernels of the reproducible training that wrote the file; empty for any other.
std::string kernels_of(const WeightArrays&);

/// The network that the file says it is of; nothing where it does not say. Error(data).
std::optional<model::Graph> graph_of_weights(const WeightArrays&);

/// Error(data): the file names more or fewer classes than its outputs speak of.
[[noreturn]] void refuse_other_classes(const std::filesystem::path&, std::size_t classes,
                                       int outputs);

}  // namespace cputrain::weights
