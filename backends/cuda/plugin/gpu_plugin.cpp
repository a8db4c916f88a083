#include "backends/cuda/cuda_backend.h"

namespace cputrain::cuda {

PluginName plugin_name() { return {.file = "libcputrain_cuda.so", .missing = {}, .remedy = {}}; }

bool cuda_plugin_built() { return true; }

}  // namespace cputrain::cuda
