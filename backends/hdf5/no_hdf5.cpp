#include <fmt/format.h>

#include "backends/hdf5/keras_reader.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::hdf5 {

weights::KerasFile read_keras(const std::filesystem::path& path) {
  fail(ExitCode::usage,
       fmt::format("--weights {}: this is a file of Keras (HDF5), and this program was built "
                   "without HDF5; build it with -DCPUTRAIN_HDF5=ON (Debian's libhdf5-dev), or {}",
                   printable(path.string()), kHowToMakeSafetensors));
}

std::string hdf5_library() { return "no HDF5"; }

}  // namespace cputrain::hdf5
