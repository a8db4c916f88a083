#include "composition/services.h"

#include "backends/cpu/cpu_backend.h"
#include "backends/mpi/mpi_communicator.h"
#include "backends/onnx/onnx_writer.h"
#include "backends/reference/reference_backend.h"
#include "backends/topology/binding.h"
#include "backends/topology/topology.h"
#include "comm/solo.h"
#include "datasets/datasets.h"

namespace cputrain {
namespace {

std::unique_ptr<Backend> make_backend(const BackendRequest& request) {
  if (request.name == "cpu") return make_cpu_backend(request.threads, request.kernels);
  return make_reference_backend(request.precision);
}

std::vector<std::string> library_versions() {
  std::vector<std::string> libraries;
  if (cpu_backend_available()) libraries.push_back(cpu_library_versions());
  libraries.push_back(mpi_library_version());
  libraries.push_back(onnx_library_version());
  const std::vector<std::string> data = data_libraries();
  libraries.insert(libraries.end(), data.begin(), data.end());
  return libraries;
}

/// Where several processes were started that this build cannot join, commands of ranks say so.
std::unique_ptr<Communicator> make_communicator(const Launcher& launcher, SignalWatch& signals) {
  if (!launcher.present() || !mpi_available()) return make_solo();
  return make_mpi_communicator([&signals] { return signals.hold(); });
}

}  // namespace

std::vector<std::string> backend_names() {
  if (cpu_backend_available()) return {"cpu", "reference"};
  return {"reference"};
}

Services make_services(const Launcher& launcher, SignalWatch& signals) {
  return {.backends = backend_names(),
          .make_backend = make_backend,
          .make_communicator = [&] { return make_communicator(launcher, signals); },
          .data = make_data_pipeline(),
          .write_onnx = write_onnx,
          .machine = read_machine,
          .bind_this_thread = bind_this_thread,
          .mpi = mpi_available(),
          .mpi_version = mpi_library_version(),
          .launcher = launcher,
          .libraries = library_versions(),
          .signals = &signals};
}

}  // namespace cputrain
