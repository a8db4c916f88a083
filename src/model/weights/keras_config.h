#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "model/weights/keras_pixels.h"

namespace cputrain::model {

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

}  // namespace cputrain::model
