#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "model/layers/facts.h"
#include "model/layers/maps.h"

/// Layers whose outputs are sums of products with a kernel.
namespace cputrain::model {

/// 2-D convolution, square kernel, weights HWIO (kernel, kernel, in / groups, out). Channels and
/// filters are cut into `groups` runs, and each run of filters reads its own run of channels: as
/// many groups as channels make it depthwise. The loss grows by `l2` times the sum of the squared
/// weights (Keras' kernel regulariser).
struct Convolution {
  static constexpr std::string_view kWord = "convolution";
  int filters;
  int kernel;
  int stride = 1;
  Padding padding = Padding::valid;
  bool bias = true;
  float l2 = 0;
  int groups = 1;
  Initializer init = Initializer::glorot_uniform;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  std::vector<ParameterSpec> parameters(const Shape& src) const;
  double macs(const Shape& src) const;
  void members(JsonMembers&);
};

/// weights (in, out); the input is read in the order height, width, channel. `l2` as a
/// convolution's.
struct Dense {
  static constexpr std::string_view kWord = "dense";
  int units;  ///< 0 for "classes" of a model file, until a number is put there
  bool bias = true;
  float l2 = 0;
  /// The ranks of a node compute it together: each has some rows of the kernel, that is some of the
  /// inputs, and works on these for the images of all (rewrite.h). No part of the model's JSON.
  bool sharded = false;
  Initializer init = Initializer::glorot_uniform;

  LayerFacts facts() const;
  Shape output(std::span<const Shape> src) const;
  std::vector<ParameterSpec> parameters(const Shape& src) const;
  double macs(const Shape& src) const;
  void members(JsonMembers&);
};

}  // namespace cputrain::model
