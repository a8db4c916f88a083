#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/shape.h"
#include "model/graph.h"
#include "weights/keras_file.h"
#include "weights/module_names.h"
#include "weights/safetensors.h"

namespace cputrain::weights {

/// An array of a weight file as this program knows it: by its own name, in the canonical layout.
struct StoredArray {
  std::string name;                       ///< "conv2d/kernel"; the file's where it means none
  std::vector<std::size_t> extents;       ///< canonical
  std::string file_name;                  ///< "layer1.0.conv1.weight"
  std::vector<std::size_t> file_extents;  ///< (out, in, height, width) of PyTorch's
  bool rearranged = false;                ///< its numbers have another order in the file
  std::function<std::vector<float>()> floats;
  /// Where it is given, the numbers with all their digits.
  std::function<std::vector<double>()> doubles{};

  std::vector<double> read() const;
};

/// An array under its name in the file, whose numbers are not read: no network here has it.
StoredArray unread_array(const TensorInfo&);

/// What a weight file holds and says, whatever program wrote it. Copies share the opened file.
struct WeightArrays {
  WeightArrays() = default;
  /// Those of a file with this program's names and layout.
  WeightArrays(const TensorFile&);

  /// Those that can be read, by name: of two of one name the last.
  std::unordered_map<std::string_view, const StoredArray*> by_name() const;
  /// One of them, by a walk over all; null where there is none of that name.
  const StoredArray* find(std::string_view name) const;
  /// Whether the file names its network. Files of other programs do not.
  bool describes_itself() const { return metadata.contains("graph"); }

  std::filesystem::path path;
  safetensors::Metadata metadata;
  std::string origin;  ///< whose names and layout it has, for people; empty: this program's own
  std::vector<StoredArray> arrays;
  /// Arrays that no network has weights for, such as counters of batches.
  std::vector<std::string> ignored;
  std::string caveat;  ///< why its numbers may mean something else here; mostly empty
  /// What the network of a file of Keras takes; nothing where that may be of any size.
  std::optional<Shape> image;
  bool says_layers = false;  ///< the same file's configuration lists them
};

/// What a weight file is, by its first bytes.
enum class WeightFormat {
  safetensors,  ///< and whatever is none of the others
  hdf5,         ///< Keras' .h5, .hdf5 and .weights.h5
  keras,        ///< Keras' .keras: a zip archive with HDF5 inside
  torch,        ///< PyTorch's .pth, .pt and .bin: pickles, alone or in a zip archive
};

/// Error(data) where it cannot be read, is of a form that is known and not read (ONNX, a checkpoint
/// of TensorFlow), or is called as files of Keras or PyTorch are and begins as none does.
WeightFormat weight_format(const std::filesystem::path&);

/// Either of Keras' own.
bool is_of_keras(const std::filesystem::path&);

/// A file that is not of Keras, by its first bytes. Error(data).
TensorFile open_tensors(const std::filesystem::path&);

/// Reads all of a weight file but its numbers. Error(data), and that of `read_keras`.
void check_weights(const std::filesystem::path&, const ReadKeras& read_keras);

/// The arrays of a weight file for this network, whatever program wrote it, by its first bytes.
/// `names`: what others call the layers. Error(data), and that of `read_keras`. `may_differ`: a
/// file whose network computes something else with the same arrays is told of, and not refused.
WeightArrays open_arrays(const std::filesystem::path&, const model::Graph&,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         bool may_differ = false);

/// What a file is and what to do with it, by its first bytes (32 are enough) and its name: "this
/// is ... (why it is not read); do ...". Empty where it is none of those that are known.
std::string foreign_file(const std::filesystem::path&, std::string_view first_bytes);

/// The same of a folder, and of a name that no file has where it is the beginning of the names of
/// files, as TensorFlow's checkpoints are called.
std::string foreign_folder(const std::filesystem::path&);

/// Error(data): `what`, as one of the above gave it.
[[noreturn]] void refuse_foreign(const std::filesystem::path&, const std::string& what);

}  // namespace cputrain::weights
