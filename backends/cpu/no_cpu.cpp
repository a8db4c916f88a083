#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/short_waits.h"
#include "core/error.h"

namespace cputrain::cpu {

std::unique_ptr<compute::Backend> make_cpu_backend(int, const KernelChoice&) {
  fail(ExitCode::usage,
       "this build has no cpu backend (it was configured with -DCPUTRAIN_ONEDNN=OFF); build with "
       "-DCPUTRAIN_ONEDNN=ON or use --backend reference");
}

bool cpu_backend_available() { return false; }
bool cpu_backend_has_bf16() { return false; }

std::string cpu_library_versions() { return {}; }

void wait_shortly(char**) {}

}  // namespace cputrain::cpu
