#include "composition/services.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/cpu_backend.h"
#include "backends/hdf5/keras_reader.h"
#include "backends/mpi/mpi_communicator.h"
#include "backends/nccl/library.h"
#include "backends/nvml/nvml.h"
#include "backends/onnx/onnx_writer.h"
#include "backends/topology/binding.h"
#include "backends/topology/topology.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/text.h"
#include "datasets/datasets.h"

namespace cputrain::composition {
namespace {

/// Backends that the build has, the default first.
std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const ListedBackend& backend : backend_list()) {
    if (backend.choice.built) names.push_back(backend.choice.name);
  }
  return names;
}

std::unique_ptr<compute::Backend> make_backend(const training::BackendRequest& request) {
  const auto list = backend_list();
  const auto named = std::ranges::find_if(
      list, [&](const ListedBackend& backend) { return backend.choice.name == request.name; });
  if (named == list.end()) {
    fail(ExitCode::usage, "--backend {}: there is no such backend; use {}", request.name,
         join(backend_names(), " or "));
  }
  for (const std::string& option : request.options) {
    const auto& known = named->choice.options;
    const auto is_it = [&](const auto& one) { return one.first == option; };
    if (std::ranges::any_of(known, is_it)) continue;
    fail(ExitCode::usage,
         "--backend {}: it has no option {} (which would change nothing); leave it out",
         request.name, printable(option));
  }
  return named->make(request);
}

std::optional<compute::DeviceList> devices_of(const std::string& name) {
  for (const ListedBackend& backend : backend_list()) {
    if (backend.choice.name == name && backend.devices) return backend.devices();
  }
  return std::nullopt;
}

/// Emulated devices sum by way of the host.
void survey(compute::DeviceList& list) {
  if (std::ranges::any_of(list.devices, &compute::Device::emulated)) return;
  const auto use = nvml::use_of(nvml::calls(), list.devices);
  for (std::size_t i = 0; i < use.size(); ++i) list.devices[i].use = use[i];
  const nccl::Library& library = nccl::library();
  list.sums = library.calls
                  ? fmt::format("NCCL {} ({})", nccl::version_text(library.version), library.file)
                  : fmt::format("{}; {}", library.why_none, library.remedy);
}

std::vector<std::string> library_versions() {
  std::vector<std::string> libraries{"compiler " __VERSION__};
  if (cpu::cpu_backend_available()) libraries.push_back(cpu::cpu_library_versions());
  libraries.push_back(mpi::mpi_library_version());
  libraries.push_back(onnx::onnx_library_version());
  libraries.push_back(hdf5::hdf5_library());
  const std::vector<std::string> data = datasets::data_libraries();
  libraries.insert(libraries.end(), data.begin(), data.end());
  return libraries;
}

/// Where several processes were started that this build cannot join, commands of ranks fail with
/// that reason.
std::unique_ptr<comm::Communicator> make_communicator(const placement::Launcher& launcher,
                                                      system::SignalWatch& signals,
                                                      double start_timeout) {
  mpi::remove_leftovers_of_dead_jobs();
  if (!launcher.present() || !mpi::mpi_available()) return comm::make_solo();
  return mpi::make_mpi_communicator([&signals] { return signals.hold(); }, {},
                                    {launcher, start_timeout});
}

}  // namespace

training::Services make_services(const placement::Launcher& launcher,
                                 system::SignalWatch& signals) {
  return {
      .backends = backend_names(),
      .make_backend = make_backend,
      .devices = devices_of,
      .survey = survey,
      .make_communicator =
          [&](double start_timeout) { return make_communicator(launcher, signals, start_timeout); },
      .data = datasets::make_data_pipeline(),
      .write_onnx = onnx::write_onnx,
      .read_keras = weights::read_once(hdf5::read_keras),
      .sha256 = datasets::sha256_of,
      .machine = topology::read_machine,
      .bind_this_thread = topology::bind_this_thread,
      .mpi = mpi::mpi_available(),
      .mpi_version = mpi::mpi_library_version(),
      .launcher = launcher,
      .libraries = library_versions(),
      .signals = &signals};
}

selftest::Own own_of(const std::string& backend) {
  for (const ListedBackend& listed : backend_list()) {
    if (listed.choice.name == backend) return listed.own;
  }
  return {};
}

}  // namespace cputrain::composition
