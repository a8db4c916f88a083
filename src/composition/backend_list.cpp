#include "composition/backend_list.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/reference/reference_backend.h"

namespace cputrain::composition {
namespace {

ListedBackend cuda_backend() {
  const bool built = cuda::cuda_plugin_built();
  std::string lack;
  if (!built) lack = compute::no_device_text("cuda", cuda::cuda_devices());
  return {{"cuda", {"exact"}, built, lack},
          [](const job::BackendRequest& request) {
            return cuda::make_cuda_backend(request.device, request.ranks_on_device, true);
          },
          cuda::cuda_devices,
          cuda::run_kernel_cases};
}

}  // namespace

std::vector<ListedBackend> backend_list() {
  // On a CPU `exact` is what `float` is there.
  return {{{"cpu", {"float", "exact", "bf16"}, cpu::cpu_backend_available()},
           [](const job::BackendRequest& request) {
             return cpu::make_cpu_backend(request.threads, request.kernels);
           }},
          {{"reference", {"float", "exact", "double"}},
           [](const job::BackendRequest& request) {
             return reference::make_reference_backend(
                 request.precision,
                 request.kernels.bf16 ? reference::Factors::bf16 : reference::Factors::as_they_are);
           }},
          cuda_backend()};
}

}  // namespace cputrain::composition
