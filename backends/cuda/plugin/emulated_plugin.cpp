// For the program that computes `--backend cuda` on the emulated device of the tests.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "backends/cuda/cuda_backend.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::cuda {

/// CPUTRAIN_EMULATED: `plain` is quicker, `checked` looks at every access of the kernels.
PluginName plugin_name() {
  const char* text = std::getenv("CPUTRAIN_EMULATED");
  const std::string_view kind = text ? text : "plain";
  if (kind == "plain") return {"libcputrain_cuda_emulated.so", {}, {}};
  if (kind == "checked") return {"libcputrain_cuda_emulated_checked.so", {}, {}};
  fail(ExitCode::usage,
       fmt::format("CPUTRAIN_EMULATED={}: must be plain or checked (which build of the kernels the "
                   "emulated device runs); unset it for plain",
                   printable(kind)));
}

bool cuda_plugin_built() { return true; }

}  // namespace cputrain::cuda
