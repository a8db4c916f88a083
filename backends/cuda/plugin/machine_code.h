#pragma once

#include <string_view>

namespace cputrain::cuda {

/// Whether the driver must compile a build's kernels for a GPU of this compute capability, since
/// they are there as PTX alone. `architectures`: of the build, as CMake names them and with blanks
/// between ("80-real 90a-real 90-virtual"). False also where words are not of that kind.
bool driver_compiles(std::string_view architectures, int major, int minor);

}  // namespace cputrain::cuda
