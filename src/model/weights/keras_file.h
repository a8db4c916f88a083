#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors.h"

namespace cputrain::model {

/// What an HDF5 file of Keras says in words.
struct KerasTexts {
  using Attributes = std::map<std::string, std::vector<std::string>>;
  /// Attributes that are text, by the path of their group: {"layers/conv2d/vars", {"name", ...}}.
  std::map<std::string, Attributes> attributes{};
  /// Arrays whose numbers were not read: those of no layer, and whole numbers.
  std::vector<std::string> unread{};
  std::string config{};  ///< config.json of a .keras file, model_config of an older one
};

/// An HDF5 file of Keras, whatever it means: arrays by their path in it ("layers/conv2d/vars/0").
struct KerasFile {
  std::filesystem::path path;  ///< as people know it
  safetensors::File arrays;
  KerasTexts texts;
};

/// Reads one, a .keras archive included. Error(data) for what cannot be read, Error(usage) in a
/// build without HDF5.
using ReadKeras = std::function<KerasFile(const std::filesystem::path&)>;

/// The same, which keeps the file that it read last: what was checked is what is used, whatever its
/// name leads to by then, and no process is started twice (MPI may run by then).
ReadKeras read_once(ReadKeras);

/// Whether an array is of an optimizer, a metric or a generator of random numbers, of the network
/// or of one within it.
bool is_of_no_layer(std::string_view path);

/// Texts as the metadata of a safetensors file, and back. Throws std::runtime_error.
safetensors::Metadata to_metadata(const KerasTexts&);
KerasTexts keras_texts(const safetensors::Metadata&);

}  // namespace cputrain::model
