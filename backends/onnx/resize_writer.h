#pragma once

#include <string>

#include "backends/onnx/schema.h"
#include "core/shape.h"
#include "model/exported_model.h"

namespace cputrain::onnx {

/// Adds nodes that resize `input`, bytes [N, height, width, 3] of any size, as the training did.
/// Returns the name of the result: floats [N, 3, rows, columns] from 0 to 255, whole numbers.
///
/// Each axis is a product with a matrix of weights, which the graph computes from the sides of the
/// image as datasets/pixels does. Sums of filters are exact, so their bytes are the training's in
/// every runtime; `bilinear-plain` sums floats, which may meet a tie otherwise. ONNX' Resize
/// with antialias has no `area`, and its other filters leave the order of the axes, the rounding
/// between them and what a cubic does at an edge to the runtime.
std::string write_resize(const model::ExportedImages&, Shape image, const std::string& input,
                         ::onnx::GraphProto&);

}  // namespace cputrain::onnx
