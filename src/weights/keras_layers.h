#pragma once

#include <string>
#include <vector>

#include "weights/keras_file.h"
#include "weights/keras_network.h"

namespace cputrain::weights {

/// A layer of a Keras file that has arrays.
struct KerasLayer {
  struct Array {
    const TensorInfo* info;
    std::string word;  ///< as we say it: "kernel"; empty where the file does not tell
  };

  std::string name{};  ///< empty where the file does not say
  /// What else it may be called: as a member of its network, or within it. Empty: nothing.
  std::string other_name{};
  std::string group{};  ///< as the configuration counts them; empty in the older form
  KerasKind kind = KerasKind::other;
  bool has_class = false;  ///< which says the kind; else it is what the shapes say
  std::vector<Array> arrays{};

  /// Null where there is none.
  const TensorInfo* find(const std::string& word) const;
  bool is_told() const;  ///< what each of its arrays is
};

struct KerasLayers {
  std::vector<KerasLayer> layers{};
  /// The layers of one kind are certain to stand in the order of the network.
  bool in_order = false;
  /// Arrays of layers that change pixels by numbers of their own (Normalization).
  std::vector<std::string> of_pixels{};
  /// What the file's configuration says; empty where it has none that can be read.
  KerasNetwork network{};
};

/// Layers of a file of Keras 3 (groups `layers/conv2d/vars`, arrays by number) or of the older form
/// (groups by layer, which list their arrays by name). Error(data).
KerasLayers keras_layers(const KerasFile&);

/// What people should know of the pixels that the network of the file learnt from; empty where
/// `input`, what becomes of pixels here, is what its layers say, or where nothing tells.
std::string keras_caveat(const KerasLayers&, const model::Input& input);

}  // namespace cputrain::weights
