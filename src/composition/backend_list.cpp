#include "composition/backend_list.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/reference/reference_backend.h"

namespace cputrain {

std::vector<ListedBackend> backend_list() {
  return {{{"cpu", {"float", "bf16"}, cpu_backend_available()},
           [](const BackendRequest& request) {
             return make_cpu_backend(request.threads, request.kernels);
           }},
          {{"reference", {"float", "double"}}, [](const BackendRequest& request) {
             return make_reference_backend(request.precision);
           }}};
}

}  // namespace cputrain
