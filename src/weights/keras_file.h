#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "weights/keras_pixels.h"
#include "weights/safetensors.h"

namespace cputrain::weights {

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

/// What is done with a file whose network computes something else than ours, where its arrays fit.
enum class Otherwise { refuse, warn };

/// Whether an array is of an optimizer, a metric or a generator of random numbers, of the network
/// or of one within it.
bool is_of_no_layer(std::string_view path);

/// Texts as the metadata of a safetensors file, and back. Throws std::runtime_error.
safetensors::Metadata to_metadata(const KerasTexts&);
KerasTexts keras_texts(const safetensors::Metadata&);

/// What config.json of a .keras file, or model_config of an older one, says of a layer.
struct KerasConfigLayer {
  std::string group;  ///< where its arrays lie in HDF5: "layers/conv2d_1"
  std::string name;
  bool scale = true, center = true;  ///< batch normalization has a gamma, a beta
};

struct KerasConfig {
  /// In the network's order, those of networks within it included. Layers whose arrays we have no
  /// use for are left out.
  std::vector<KerasConfigLayer> layers{};
  KerasPixels pixels{};
  /// The images that its layers with weights get: what the network takes, or what a Resizing in
  /// front makes of them. Nothing where they may be of any size, or are no RGB.
  std::optional<Shape> image{};
};

/// Throws std::runtime_error.
KerasConfig keras_config(const std::string& json);

/// Whether a file has a configuration that can be read.
bool has_keras_config(const std::string& json);

/// The same member of a file's configuration; nothing where it has none that can be read.
std::optional<Shape> keras_image(const std::string& json);

/// Null where there is none, or `object` is no object.
const nlohmann::json& keras_member(const nlohmann::json& object, const char* key);

/// Empty where it is no text.
std::string keras_text(const nlohmann::json&);

/// The list of a network's layers; null where it has none.
const nlohmann::json& keras_layers_of(const nlohmann::json& network);

/// Whether an entry is a function that a network calls (`x / 255`, Lambda), and no layer.
bool is_keras_operation(const nlohmann::json& entry);

/// Whether the configuration says that the class comes with Keras; older files do not.
bool says_keras_class(const nlohmann::json& entry);

/// The groups in which the arrays of the layers of one network lie: Keras names them after the
/// class, in other letters, and counts those of one class.
class KerasGroups {
 public:
  explicit KerasGroups(std::string place) : place_(std::move(place)) {}
  /// The group of the next layer of this class; nothing where we have no use for it.
  std::optional<std::string> next(const std::string& class_name);

 private:
  std::string place_;
  std::map<std::string, int> counts_;
};

}  // namespace cputrain::weights
