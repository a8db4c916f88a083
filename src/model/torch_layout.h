#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/exported_model.h"
#include "model/safetensors.h"

/// Weights as PyTorch keeps them. Its activations are NCHW, so that a flattened map has the order
/// channel, height, width, where ours has height, width, channel.
namespace cputrain::model {

/// A convolution's kernel (kernel, kernel, in, out) as (out, in, kernel, kernel), which is ONNX'
/// order, too. `inputs[i]` is the input channel of ours that is theirs number i; empty: the same.
std::vector<float> to_oihw(std::span<const float> hwio, const std::vector<int>& extents,
                           std::span<const std::size_t> inputs = {});

/// All parameters under the names of a state_dict (`conv2d.weight`, `bn.running_mean`): kernels
/// OIHW and (out, in), rows that read a flattened map in its NCHW order. Values are read when a
/// tensor is written.
std::vector<safetensors::OutTensor> torch_tensors(const ExportedModel&);

}  // namespace cputrain::model
