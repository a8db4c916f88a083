#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace cputrain::model {

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
