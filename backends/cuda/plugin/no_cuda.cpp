#include "backends/cuda/cuda_backend.h"

namespace cputrain::cuda {

PluginName plugin_name() {
  return {.file = {},
          .missing =
              "this build has no backend cuda: nvcc was not found, or it was configured "
              "with -DCPUTRAIN_CUDA=OFF",
          .remedy =
              "install the CUDA Toolkit (12 or newer) and run scripts/build, or configure with "
              "-DCPUTRAIN_CUDA=ON"};
}

bool cuda_plugin_built() { return false; }

}  // namespace cputrain::cuda
