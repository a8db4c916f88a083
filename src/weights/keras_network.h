#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "weights/step_paths.h"

namespace cputrain::weights {

/// What layers make of pixels: pixel * scale + offset, for each colour.
struct KerasScaling {
  std::array<double, 3> scale{1, 1, 1}, offset{};
};

/// What config.json of a .keras file, or model_config of an older one, says of a network.
struct KerasNetwork {
  /// In the network's order, those of networks within it included. An activation that is an
  /// argument of a layer is a step behind it. What the configuration leaves open, or says of
  /// classes that are not Keras' own, is unknown.
  NetworkSteps steps{};
  int output = -1;  ///< which of them makes the answers; -1: not known
  /// Layers that are unknown since their classes or functions are not Keras' own.
  std::vector<std::string> not_compared{};
  /// Layers in front of all weights that change the numbers of pixels: "Rescaling".
  std::vector<std::string> pixel_layers{};
  /// What all of them make; nothing where the configuration has no such numbers of one.
  std::optional<KerasScaling> pixel_scaling = KerasScaling{};
  std::vector<std::string> crops{};  ///< "CenterCrop to 224x224"
  /// The images that its layers with weights get: what the network takes, or what a Resizing in
  /// front makes of them. Nothing where they may be of any size, or are no RGB.
  std::optional<Shape> image{};
  bool lists_layers = false;
};

/// Throws std::runtime_error for a text that cannot be read.
KerasNetwork read_keras_network(const std::string& config);

/// Nothing where a file has no configuration, or one that cannot be read.
std::optional<KerasNetwork> network_said_by(const std::string& config);

/// What a layer of Keras does. A class of Keras' own that no layer here is like is foreign, its
/// word what to say behind its name; any other class is unknown.
NetworkStep keras_layer_step(const nlohmann::json& entry);

/// What the arrays of a layer are for. Files whose layers have no classes tell it by the shapes.
enum class KerasKind {
  convolution,
  depthwise,
  dense,
  norm,        ///< gamma, beta, moving statistics
  plain_norm,  ///< gamma and beta alone
  other
};

/// `other` where we have no use for the arrays of a class, "DepthwiseConv2D".
KerasKind kind_of_keras_class(const std::string& class_name);
/// The same by the word for the class in names of groups, "depthwise_conv2d".
KerasKind kind_of_keras_word(const std::string& word);
/// How Keras makes that word.
std::string keras_word(const std::string& class_name);

/// What the member `activation` says.
NetworkStep keras_activation_step(const nlohmann::json& config);

/// Notes what a layer in front of all weights does, if anything.
void note_keras_pixels(const nlohmann::json& entry, KerasNetwork&);

/// Whether a layer has weights that Keras learns, so that what comes behind it gets no pixels.
bool ends_keras_pixels(const std::string& class_name);

/// Whether a layer of Rescaling or Normalization gives back what it gets.
bool keeps_numbers(const std::string& class_name, const nlohmann::json& config);

}  // namespace cputrain::weights
