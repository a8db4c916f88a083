#include "weights/keras_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text.h"
#include "weights/keras_file.h"

namespace cputrain::weights {
namespace {

using nlohmann::json;

/// 2 or [2, 2].
std::optional<Sides> sides_in(const json& value) {
  const bool list = value.is_array() && value.size() == 2;
  const auto height = keras_number(list ? value[0] : value, 1);
  const auto width = keras_number(list ? value[1] : value, 1);
  return height && width ? std::optional(Sides{*height, *width}) : std::nullopt;
}

std::optional<model::Padding> padding_in(const json& config) {
  const std::string word = keras_text(keras_member(config, "padding"));
  if (word == "valid") return model::Padding::valid;
  return word == "same" ? std::optional(model::Padding::same) : std::nullopt;
}

bool is_number(const json& value, double wanted) {
  return value.is_number() && value.get<double>() == wanted;
}

/// What neither windows nor kernels here can be.
std::string unlike_in(const json& config) {
  if (keras_member(config, "data_format") == json("channels_first")) {
    return "data_format channels_first";
  }
  const auto dilation = sides_in(keras_member(config, "dilation_rate"));
  if (!dilation || *dilation == Sides{1, 1}) return "";
  return fmt::format("dilation_rate {}x{}", (*dilation)[0], (*dilation)[1]);
}

NetworkStep windowed(StepKind kind, const json& config, const char* size) {
  return {.kind = kind,
          .size = sides_in(keras_member(config, size)),
          .stride = sides_in(keras_member(config, "strides")),
          .padding = padding_in(config),
          .unlike = unlike_in(config)};
}

NetworkStep convolution_of(const json& config) {
  NetworkStep step = windowed(StepKind::weights, config, "kernel_size");
  step.groups = keras_number(keras_member(config, "groups"), 1);
  return step;
}

/// Its groups follow from the shape of its kernel.
NetworkStep depthwise_of(const json& config) {
  return windowed(StepKind::weights, config, "kernel_size");
}

/// "1,2"; empty where it is the last one of images.
std::string other_axis_in(const json& config) {
  const json& said = keras_member(config, "axis");
  const json& axis = said.is_array() && said.size() == 1 ? said.front() : said;  // Keras 2: [3]
  if (axis.is_array()) {
    std::vector<std::string> all;
    for (const json& one : axis) all.push_back(one.is_number_integer() ? one.dump() : "?");
    return all.size() > 4 ? "list" : join(all, ",");
  }
  const bool last = !axis.is_number_integer() || axis == json(-1) || axis >= json(3);
  return last ? "" : axis.dump();
}

NetworkStep normalization_of(const json& config) {
  const json& epsilon = keras_member(config, "epsilon");
  NetworkStep step{.kind = StepKind::weights, .axis = other_axis_in(config)};
  if (epsilon.is_number()) step.epsilon = epsilon.get<double>();
  if (keras_member(config, "rms_scaling") == json(true)) step.unlike = "rms_scaling";
  return step;
}

NetworkStep plain_normalization_of(const json& config) {
  const auto without = [&](const char* key) { return keras_member(config, key) == json(false); };
  const NetworkStep step = normalization_of(config);
  if (!without("scale") || !without("center") || !step.epsilon) return step;
  const model::LayerNorm norm{static_cast<float>(*step.epsilon), false, false};
  return {.kind = StepKind::activation,
          .word = norm.facts().formula,
          .unlike = step.axis.empty() ? step.unlike : "axis " + step.axis};
}

NetworkStep pool_of(StepKind kind, const json& config) {
  NetworkStep step = windowed(kind, config, "pool_size");
  if (keras_member(config, "strides").is_null()) step.stride = step.size;
  const bool known = step.size && step.stride && step.padding;
  return known ? step : NetworkStep{};
}

NetworkStep global_pool_of(StepKind kind, const json& config) {
  return {.kind = kind, .global = true, .unlike = unlike_in(config)};
}

/// [[top, bottom], [left, right]].
NetworkStep zero_pad_of(const json& config) {
  NetworkStep step{.kind = StepKind::zero_pad, .unlike = unlike_in(config)};
  const json& padding = keras_member(config, "padding");
  if (!padding.is_array() || padding.size() != 2) return {};
  for (int axis = 0; axis < 2; ++axis) {
    const json& sides = padding[axis];
    if (!sides.is_array() || sides.size() != 2) return {};
    for (int end = 0; end < 2; ++end) {
      const auto zeros = keras_number(sides[end], 0);
      if (!zeros) return {};
      step.zeros[2 * axis + end] = *zeros;
    }
  }
  return step;
}

NetworkStep concat_of(const json& config) {
  const json& axis = keras_member(config, "axis");
  const bool channels = axis.is_null() || axis == json(-1) || axis == json(3);
  return {.kind = channels ? StepKind::concat : StepKind::foreign,
          .word = channels ? "" : " of another axis than the last"};
}

/// Another layout of the same numbers in the same order, as far as one axis is left: [n], [1, 1,
/// n].
NetworkStep reshape_of(const json& config) {
  const json& shape = keras_member(config, "target_shape");
  if (!shape.is_array() || shape.empty()) return {};
  const bool flat = std::all_of(shape.begin(), shape.end() - 1,
                                [](const json& sides) { return sides == json(1); });
  return {.kind = flat ? StepKind::same : StepKind::foreign};
}

NetworkStep flatten_of(const json& config) {
  const std::string unlike = unlike_in(config);
  if (unlike.empty()) return {.kind = StepKind::same};
  return {.kind = StepKind::foreign, .word = " " + unlike};
}

NetworkStep named_activation(const std::string& word) {
  return {.kind = StepKind::activation, .word = word};
}

NetworkStep leaky_of(float slope) {
  return named_activation(model::LeakyRelu{slope}.facts().formula);
}

/// `usual`: where the file is silent. Keras 2 calls it alpha.
NetworkStep leaky_relu_of(const json& config, float usual) {
  const json& now = keras_member(config, "negative_slope");
  const json& slope = now.is_null() ? keras_member(config, "alpha") : now;
  if (slope.is_null()) return leaky_of(usual);
  return slope.is_number() ? leaky_of(slope.get<float>()) : NetworkStep{};
}

NetworkStep relu_of(const json& config) {
  const json& most = keras_member(config, "max_value");
  const json& threshold = keras_member(config, "threshold");
  const json& slope = keras_member(config, "negative_slope");
  if (!threshold.is_null() && !is_number(threshold, 0))
    return named_activation("relu with a threshold");
  if (!slope.is_null() && !is_number(slope, 0)) {
    return most.is_null() ? leaky_relu_of(config, 0) : named_activation("relu with a slope");
  }
  if (most.is_null()) return named_activation("relu");
  if (is_number(most, 6)) return named_activation("relu6");
  return most.is_number() ? named_activation(fmt::format("relu up to {:g}", most.get<double>()))
                          : NetworkStep{};
}

/// Keras' own functions; a person's may have any other name.
NetworkStep activation_of_word(const std::string& word) {
  static const std::set<std::string> known{"relu",    "relu6",        "silu",      "elu",
                                           "selu",    "gelu",         "tanh",      "sigmoid",
                                           "softmax", "softplus",     "softsign",  "exponential",
                                           "mish",    "hard_sigmoid", "hard_silu", "log_softmax"};
  if (word == "linear") return {.kind = StepKind::same};
  if (word == "swish") return named_activation("silu");
  if (word == "leaky_relu") return leaky_of(0.2f);
  if (word == "hard_swish") return named_activation("hard_silu");
  return known.contains(word) ? named_activation(word) : NetworkStep{};
}

struct KnownClass {
  std::function<NetworkStep(const json& config)> read;
  KerasKind kind = KerasKind::other;
};

const std::map<std::string, KnownClass>& known_classes() {
  static const auto always = [](NetworkStep step) {
    return [step = std::move(step)](const json&) { return step; };
  };
  static const auto of_kind = [](NetworkStep (*read)(StepKind, const json&), StepKind kind) {
    return [read, kind](const json& config) { return read(kind, config); };
  };
  static const std::map<std::string, KnownClass> all{
      {"Conv2D", {convolution_of, KerasKind::convolution}},
      {"DepthwiseConv2D", {depthwise_of, KerasKind::depthwise}},
      {"Dense", {always({.kind = StepKind::weights}), KerasKind::dense}},
      {"BatchNormalization", {normalization_of, KerasKind::norm}},
      {"LayerNormalization", {plain_normalization_of, KerasKind::plain_norm}},
      {"ZeroPadding2D", {zero_pad_of}},
      {"MaxPooling2D", {of_kind(pool_of, StepKind::max_pool)}},
      {"AveragePooling2D", {of_kind(pool_of, StepKind::average_pool)}},
      {"GlobalMaxPooling2D", {of_kind(global_pool_of, StepKind::max_pool)}},
      {"GlobalAveragePooling2D", {of_kind(global_pool_of, StepKind::average_pool)}},
      {"Activation", {keras_activation_step}},
      {"ReLU", {relu_of}},
      {"LeakyReLU", {[](const json& config) { return leaky_relu_of(config, 0.3f); }}},
      {"ELU", {always(named_activation("elu"))}},
      {"Softmax", {always(named_activation("softmax"))}},
      {"Add", {always({.kind = StepKind::add})}},
      {"Concatenate", {concat_of}},
      {"Reshape", {reshape_of}},
      {"Flatten", {flatten_of}}};
  return all;
}

/// Layers that do nothing, or nothing when no training goes on.
constexpr std::string_view kChangeNothing =
    "InputLayer Dropout SpatialDropout1D SpatialDropout2D GaussianNoise GaussianDropout "
    "AlphaDropout ActivityRegularization Identity RandomFlip RandomRotation RandomZoom "
    "RandomContrast RandomHeight RandomTranslation RandomBrightness RandomWidth RandomHue "
    "RandomColorDegeneration RandomColorJitter RandomSaturation RandomGrayscale "
    "RandomPosterization RandomSharpness RandomPerspective RandomShear RandomElasticTransform "
    "RandomGaussianBlur RandomInvert RandomErasing RandAugment AugMix MixUp CutMix";

/// In front they change images, which is told elsewhere (keras_caveat).
constexpr std::string_view kOfImages =
    "Rescaling Normalization Resizing CenterCrop RandomCrop Cropping2D";

/// Keras' own classes that no layer here is like, in files that do not say whose classes are:
/// those of Keras 2.
constexpr std::string_view kForeign =
    "Permute UnitNormalization UpSampling2D Conv2DTranspose Multiply Average Maximum Minimum "
    "Subtract Dot PReLU ThresholdedReLU SeparableConv2D GroupNormalization "
    "RepeatVector Masking LocallyConnected2D LocallyConnected1D Conv1D MaxPooling1D "
    "AveragePooling1D GlobalMaxPooling1D GlobalAveragePooling1D ZeroPadding1D Cropping1D "
    "UpSampling1D SpectralNormalization LSTM GRU Bidirectional TimeDistributed Attention "
    "MultiHeadAttention Embedding EinsumDense Solarization AutoContrast Equalization";

/// A function that a network calls: "Relu" of Keras 3, "nn.relu" of Keras 2.
NetworkStep operation_of(const std::string& class_name, const json& config) {
  if (class_name == "Add") return {.kind = StepKind::add};
  if (class_name == "LeakyRelu") return leaky_relu_of(config, 0.2f);
  const std::string function = keras_text(keras_member(config, "function"));
  if (function == "nn.leaky_relu") return {};  // the slope is an argument of the call
  const std::string word = function.starts_with("nn.") ? function.substr(3) : class_name;
  const NetworkStep step = activation_of_word(small_letters(word));
  return step.kind == StepKind::activation ? step : NetworkStep{.kind = StepKind::pixels};
}

bool is_among(std::string_view words, const std::string& word) {
  const std::vector<std::string> all = split(words, ' ');
  return std::ranges::find(all, word) != all.end();
}

}  // namespace

std::string keras_word(const std::string& class_name) {
  const auto in = [&](std::size_t i, char first, char last) {
    return i < class_name.size() && class_name[i] >= first && class_name[i] <= last;
  };
  std::string word;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const bool begins = in(i, 'A', 'Z') && (in(i - 1, 'a', 'z') || in(i + 1, 'a', 'z'));
    if (i > 0 && begins) word += '_';
    word += class_name[i];
  }
  return small_letters(word);
}

KerasKind kind_of_keras_class(const std::string& class_name) {
  const auto known = known_classes().find(class_name);
  return known == known_classes().end() ? KerasKind::other : known->second.kind;
}

KerasKind kind_of_keras_word(const std::string& word) {
  for (const auto& [name, known] : known_classes()) {
    if (keras_word(name) == word) return known.kind;
  }
  return KerasKind::other;
}

NetworkStep keras_activation_step(const json& config) {
  const json& said = keras_member(config, "activation");
  if (said.is_string()) return activation_of_word(said.get<std::string>());
  const json& kind = keras_member(said, "class_name");
  const json& layer = keras_member(said, "config");
  if (kind == json("ReLU")) return relu_of(layer);
  if (kind == json("LeakyReLU")) return leaky_relu_of(layer, 0.3f);
  const bool none = said.is_null() && config.is_object() && config.contains("activation");
  return {.kind = none ? StepKind::same : StepKind::unknown};
}

NetworkStep keras_layer_step(const json& entry) {
  const std::string kind = keras_text(keras_member(entry, "class_name"));
  const json& config = keras_member(entry, "config");
  if (is_among(kChangeNothing, kind) || keeps_numbers(kind, config))
    return {.kind = StepKind::same};
  if (is_among(kOfImages, kind)) return {.kind = StepKind::pixels};
  if (is_keras_operation(entry)) return operation_of(kind, config);
  const auto known = known_classes().find(kind);
  if (known != known_classes().end()) return known->second.read(config);
  return {.kind = is_among(kForeign, kind) || says_keras_class(entry) ? StepKind::foreign
                                                                      : StepKind::unknown};
}

}  // namespace cputrain::weights
