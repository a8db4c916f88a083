#pragma once

#include <filesystem>
#include <span>

#include "model/graph.h"
#include "model/weights/keras_arrays.h"
#include "model/weights/module_names.h"
#include "model/weights/weight_arrays.h"

namespace cputrain::model {

/// What a weight file is, by its first bytes.
enum class WeightFormat {
  safetensors,  ///< and whatever is none of the others
  hdf5,         ///< Keras' .h5, .hdf5 and .weights.h5
  keras,        ///< Keras' .keras: a zip archive with HDF5 inside
  pickle,       ///< PyTorch's .pth, .pt and .bin
};

/// Error(data) where it cannot be read, is of a form that is known and not read (ONNX, a checkpoint
/// of TensorFlow), or is called as Keras' files are and begins as none does.
WeightFormat weight_format(const std::filesystem::path&);

/// Either of Keras' own.
bool is_of_keras(const std::filesystem::path&);

/// Error(data): pickles are programs that run as they are read. Says how to make safetensors of
/// one.
[[noreturn]] void refuse_pickle(const std::filesystem::path&);

/// The arrays of a weight file for this network, whatever program wrote it, by its first bytes.
/// `names`: what others call the layers. Error(data), and that of `read_keras`. `otherwise`: what
/// is done where the file's network computes something else with the same arrays.
WeightArrays open_arrays(const std::filesystem::path&, const Graph&,
                         std::span<const ModuleNames> names, const ReadKeras& read_keras,
                         Otherwise otherwise = Otherwise::refuse);

}  // namespace cputrain::model
