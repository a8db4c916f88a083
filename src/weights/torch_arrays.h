#pragma once

#include <span>
#include <vector>

#include "model/exported_model.h"
#include "model/graph.h"
#include "weights/module_names.h"
#include "weights/safetensors.h"
#include "weights/weight_file.h"

/// Weights as PyTorch keeps them. Its activations are NCHW, so that a flattened map has the order
/// channel, height, width, where ours has height, width, channel.
namespace cputrain::weights {

/// All parameters under the names of a state_dict (`conv2d.weight`, `bn.running_mean`). Values are
/// read when a tensor is written.
std::vector<safetensors::OutTensor> torch_tensors(const model::ExportedModel&);

/// The arrays of a file for this network. Files of PyTorch are those that say so, as our own export
/// does, and those that say nothing of their network and have none of its arrays under our names.
/// Other programs have several names for its layers. Those are taken that the file has most of;
/// our own count, too. What stands before the names ("module.", "sequential/") is left out where
/// all names of the file have it, or all arrays of the network. Error(data) where two arrays may be
/// meant by one name.
WeightArrays arrays_for(const TensorFile&, const model::Graph&,
                        std::span<const ModuleNames> names = {});

}  // namespace cputrain::weights
