#include "backends/cuda/cuda_backend.h"

namespace cputrain::cuda {

PluginName plugin_name() { return {.file = "libcputrain_cuda.so", .missing = {}, .remedy = {}}; }

}  // namespace cputrain::cuda
