#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "model/layers/facts.h"

/// How pixels become numbers, in the words of those who train networks: the numbers are
/// (pixel / 255 - mean) / deviation, with a mean and a deviation for each colour.
namespace cputrain::model {

/// The first layer, the image: uint8 RGB, as number `pixel * scale + offset`.
struct Input {
  static constexpr std::string_view kWord = "input";
  PerColour scale = 1.0f / 255.0f;
  PerColour offset = 0.0f;

  LayerFacts facts() const { return {.keras_name = kWord}; }
  bool operator==(const Input&) const = default;
};

Input normalized(const PerColour& mean, const PerColour& deviation);

/// ImageNet's images have these, as torchvision, timm and Keras' "torch" mode have them.
inline constexpr PerColour kImageNetMean{0.485f, 0.456f, 0.406f};
inline constexpr PerColour kImageNetDeviation{0.229f, 0.224f, 0.225f};

/// A word below, or `MEAN/DEVIATION`, each a number or three between commas. Error(usage).
Input parse_normalization(const std::string& text);
std::vector<std::string> normalization_words();

/// The word of it; empty where it has none.
std::string normalization_word(const Input&);

/// The word of it, if it has one, else what is done: "x * 0.0157 + -1".
std::string normalization_text(const Input&);

/// Each colour's number, or one where all have the same: "0.0157" or "(0.0171, 0.0175, 0.0174)".
std::string per_colour_text(const PerColour&);

}  // namespace cputrain::model
