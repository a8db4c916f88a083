#pragma once

#include <filesystem>
#include <string>

#include "weights/keras_file.h"

namespace cputrain::hdf5 {

/// Reads the arrays and texts of an HDF5 file, or of the one in a .keras archive. libhdf5 works in
/// a process of its own, which alone ends where a damaged file makes it fail. Nothing beside the
/// file is opened. Error(data) for what cannot be read, Error(usage) in a build without HDF5.
weights::KerasFile read_keras(const std::filesystem::path&);

/// What makes safetensors of a file of Keras elsewhere, for people. Paths name the layers of
/// networks within the network, too.
inline constexpr const char* kHowToMakeSafetensors =
    "make safetensors of it in Python: import keras, safetensors.numpy; m = "
    "keras.saving.load_model('model.keras'); safetensors.numpy.save_file({'/'.join("
    "w.path.split('/')[-2:]): w.numpy() for w in m.weights}, 'weights.safetensors')";

/// "HDF5 1.10.8", or "no HDF5".
std::string hdf5_library();

}  // namespace cputrain::hdf5
