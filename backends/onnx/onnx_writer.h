#pragma once

#include <string>

#include "model/exported_model.h"
#include "system/files.h"

namespace cputrain::onnx {

/// Writes the network for inference as ONNX (operator set 13): input `image`, float32
/// [N, height, width, 3], RGB from 0 to 255, with the preprocessing in the graph; output
/// `probabilities` [N, classes], or [N, 1] with the probability of class 1. Error(usage) in a build
/// without ONNX and where the file would exceed protobuf's 2 GB.
void write_onnx(const model::ExportedModel&, system::OutputFile&);

/// "ONNX operator set 13, protobuf 3.21.12", or "no ONNX".
std::string onnx_library_version();

}  // namespace cputrain::onnx
