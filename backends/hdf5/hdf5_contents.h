#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "system/files.h"
#include "weights/keras_file.h"

namespace cputrain::hdf5 {

/// Writes the arrays of an HDF5 file that lies in memory as safetensors, with `texts` and its own
/// as metadata (model::to_metadata). Links to other files or names are not followed; arrays that
/// are compressed, virtual or lie in other files are refused, and all together may not be larger
/// than the file. Throws std::runtime_error.
void write_contents(std::span<std::byte> file, weights::KerasTexts texts, system::OutputFile&);

/// "1.10.8": the version that this program was built with, whose form of calls the loaded one has.
std::string built_with();

}  // namespace cputrain::hdf5
