#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model/exported_model.h"
#include "weights/safetensors.h"

/// Weights as PyTorch keeps them. Its activations are NCHW, so that a flattened map has the order
/// channel, height, width, where ours has height, width, channel.
namespace cputrain::weights {

/// By the extents of an array of PyTorch's.
std::vector<std::size_t> canonical_extents(std::span<const std::size_t> torch);

/// A parameter, and what PyTorch makes of it: kernels OIHW and (out, in), rows that read a
/// flattened map in its NCHW order.
struct TorchParameter {
  std::string layer, name;           ///< "conv2d", "conv2d/kernel"
  std::string word;                  ///< "weight", "bias", "running_mean", "running_var"
  std::vector<std::size_t> extents;  ///< canonical
  /// Our input channel (a dense layer's: row) for each of PyTorch's; empty for vectors of outputs.
  std::shared_ptr<const std::vector<std::size_t>> inputs;
};

/// In model order.
std::vector<TorchParameter> torch_parameters(const model::Graph&);

/// An array of these canonical extents, which may be those of a network with other outputs.
std::vector<float> from_torch(const TorchParameter&, std::span<const std::size_t> canonical,
                              std::span<const float> theirs);

/// All parameters under the names of a state_dict (`conv2d.weight`, `bn.running_mean`). Values are
/// read when a tensor is written.
std::vector<safetensors::OutTensor> torch_tensors(const model::ExportedModel&);

}  // namespace cputrain::weights
