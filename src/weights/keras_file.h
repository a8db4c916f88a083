#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  TensorFile arrays;
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

/// Null where there is none, or `object` is no object.
const nlohmann::json& keras_member(const nlohmann::json& object, const char* key);

/// Empty where it is no text.
std::string keras_text(const nlohmann::json&);

/// Whether an entry is a function that a network calls (`x / 255`, Lambda), and no layer.
bool is_keras_operation(const nlohmann::json& entry);

/// Whether the configuration says that the class comes with Keras; older files do not.
bool says_keras_class(const nlohmann::json& entry);

/// A whole number from `least` up to 16384, which is more than any side of an image; nothing for
/// anything else.
std::optional<int> keras_number(const nlohmann::json&, int least);

/// Layers by their names, where two of one name are none.
template <class T>
class ByName {
 public:
  explicit ByName(T none) : none_(none) {}

  void note(const std::string& name, T one) {
    const auto [place, added] = all_.emplace(name, one);
    if (!added) place->second = none_;
  }
  T find(const std::string& name) const {
    const auto found = all_.find(name);
    return found == all_.end() ? none_ : found->second;
  }
  bool is_twice(const std::string& name) const {
    return all_.contains(name) && find(name) == none_;
  }

 private:
  std::map<std::string, T> all_;
  T none_;
};

}  // namespace cputrain::weights
