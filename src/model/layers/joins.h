#pragma once

#include <span>
#include <string_view>

#include "core/shape.h"
#include "model/layers/facts.h"

/// Maps that are joined, or read as one vector.
namespace cputrain::model {

/// The sum of two or more inputs of one shape.
struct Add {
  static constexpr std::string_view kWord = "add";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

/// The channels of two or more maps of one height and width, one map behind the other.
struct Concat {
  static constexpr std::string_view kWord = "concat";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

/// The map as one vector: height, width, channel.
struct Flatten {
  static constexpr std::string_view kWord = "flatten";

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
};

}  // namespace cputrain::model
