#include "composition/backend_list.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"

namespace cputrain::composition {

std::vector<ListedBackend> backend_list() {
  return {{{"cpu", {"float", "bf16"}, cpu::cpu_backend_available()},
           [](const job::BackendRequest& request) {
             return cpu::make_cpu_backend(request.threads, request.kernels);
           }},
          {{"reference", {"float", "double"}}, [](const job::BackendRequest& request) {
             return reference::make_reference_backend(request.precision);
           }}};
}

}  // namespace cputrain::composition
