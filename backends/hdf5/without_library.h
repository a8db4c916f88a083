#pragma once

#include <string>

namespace cputrain::hdf5 {

/// What makes safetensors of a file of Keras elsewhere, for people.
std::string how_to_make_safetensors();

}  // namespace cputrain::hdf5
