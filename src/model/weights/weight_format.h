#pragma once

#include <filesystem>

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

}  // namespace cputrain::model
