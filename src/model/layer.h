#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "core/overloaded.h"
#include "core/shape.h"
#include "model/layers/facts.h"
#include "model/layers/maps.h"
#include "model/layers/pointwise.h"
#include "model/layers/products.h"
#include "model/normalization.h"

/// A layer is data: a description without memory, device or state. Backends turn a graph of them
/// into a program. Adding a type to the variant fails to compile until every backend handles it.
namespace cputrain::model {

/// All there are: those with figures, and those without in the order of their words, as messages
/// list them. What a layer is stands with its struct, in a file for each family: its word, its
/// facts and, where it has such, its output's shape (else that of what it reads), parameters,
/// multiply-adds and members in model files.
using Layer = std::variant<Input, Convolution, MaxPool, AveragePool, Dense, ZeroPad, BatchNorm,
                           LayerNorm, Dropout, LeakyRelu, Add, Concat, Flatten, GlobalAveragePool,
                           Relu, Relu6, SigmoidCrossEntropy, Silu, SoftmaxCrossEntropy>;

/// The word used in summaries, JSON and weight files: "convolution", "dense", ...
std::string_view type_name(const Layer&);

LayerFacts facts_of(const Layer&);

/// Extents of the output for the given inputs; throws Error(usage) where their number or shapes do
/// not fit or no output would be left, naming the sizes.
Shape output_shape(const Layer&, std::span<const Shape> src);
inline Shape output_shape(const Layer& layer, const Shape& src) {
  return output_shape(layer, std::span(&src, 1));
}

std::vector<ParameterSpec> parameters(const Layer&, const Shape& src);

/// Multiply-accumulates of one image in the forward pass; 0 for layers that do none.
double macs(const Layer&, const Shape& src);

/// Reads or writes the members that the layer has in a model file.
void describe(JsonMembers&, Layer&);

}  // namespace cputrain::model
