#pragma once

#include <filesystem>
#include <string>

#include "weights/keras_file.h"

namespace cputrain::hdf5 {

/// Reads the arrays and texts of an HDF5 file, or of the one in a .keras archive. libhdf5 works in
/// a process of its own, which alone ends where a damaged file makes it fail. Nothing beside the
/// file is opened. Error(data) for what cannot be read, Error(usage) in a build without HDF5.
weights::KerasFile read_keras(const std::filesystem::path&);

/// "HDF5 1.10.8", or "no HDF5".
std::string hdf5_library();

}  // namespace cputrain::hdf5
