#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/flags/flag_groups.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "model/summary.h"
#include "system/placement/launch_words.h"
#include "system/print.h"
#include "training/request/choose_training.h"
#include "training/request/flag_grammars.h"
#include "training/run/run_folder.h"
#include "training/session/session.h"

namespace cputrain::commands {
namespace {

std::string machine_text(const placement::Machine& m) {
  return system::formatted(
      "Host {}: {} ({})\n"
      "  {}, {}, {} cores, {} hardware threads; "
      "this process may use {} cores ({} hardware threads)\n"
      "  {}; {}; {:.1f} GB of memory\n",
      m.host, m.cpu_model, text_of(m.cpu_id), counted(m.sockets, "socket"),
      counted(m.numa_nodes, "NUMA node"), m.cores, m.hardware_threads, m.allowed_cores,
      m.allowed_cpus.size(), m.instruction_set, join(m.cpu_id.caches, ", "), m.memory_gb);
}

std::vector<placement::LaunchLine> launch_lines_here(const training::Session& session,
                                                     const training::Services& services,
                                                     const std::string& program) {
  const placement::Machine& m = session.machine;
  auto lines = placement::launch_lines({m.cores, m.hardware_threads, m.numa_nodes, m.cpu_quota},
                                       geteuid() == 0, services.mpi);
  constexpr std::string_view kName = "./cputrain";
  for (placement::LaunchLine& launch : lines)
    launch.line.replace(launch.line.rfind(kName), kName.size(), program);
  return lines;
}

std::string launch_text(const std::vector<placement::LaunchLine>& lines) {
  std::string text = "On this machine we would type:\n";
  for (const placement::LaunchLine& launch : lines) {
    text += system::formatted("  {}    {}\n", launch.line, launch.purpose);
  }
  return text;
}

nlohmann::ordered_json launch_json(const std::vector<placement::LaunchLine>& lines) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const placement::LaunchLine& launch : lines) {
    json.push_back({{"line", launch.line}, {"purpose", launch.purpose}});
  }
  return json;
}

/// Those that may compute a column of a table, whether this build has them or not.
std::map<std::string, compute::DeviceList> devices_here(const training::Services& services) {
  std::map<std::string, compute::DeviceList> found;
  for (const std::string_view name : training::kDeviceBackends) {
    const std::string backend(name);
    auto list = services.devices ? services.devices(backend) : std::nullopt;
    if (!list) continue;
    if (services.survey && !list->devices.empty()) services.survey(*list);
    found[backend] = *list;
  }
  return found;
}

std::string device_text(const std::string& backend, const compute::DeviceList& list) {
  std::vector<std::string> devices;
  for (const compute::Device& device : list.devices) {
    devices.push_back(fmt::format("{} ({})", device.name, device.facts));
  }
  if (devices.empty())
    return fmt::format("{}: none here ({}); {}", backend, list.why_none, list.remedy);
  return fmt::format("{}: {}", backend, join(devices, ", "));
}

/// "12 % busy with 1 process, 71.2 GB free; PCIe 5 x16, NVLink to 1"; "" where nothing is known.
std::string use_text(const compute::DeviceUse& use) {
  std::vector<std::string> parts, own;
  if (use.busy_percent) own.push_back(fmt::format("{} % busy", *use.busy_percent));
  if (use.processes) {
    own.push_back(
        fmt::format("{} process{} there", *use.processes, *use.processes == 1 ? "" : "es"));
  }
  if (use.free_memory) {
    own.push_back(fmt::format("{:.1f} GB free", static_cast<double>(*use.free_memory) / 1e9));
  }
  if (!own.empty()) parts.push_back(join(own, ", "));
  if (!use.links.empty()) parts.push_back(join(use.links, ", "));
  return join(parts, "; ");
}

void print_devices(const std::string& backend, const compute::DeviceList& list) {
  system::print("GPUs for --backend {}\n", device_text(backend, list));
  for (const compute::Device& device : list.devices) {
    const std::string text = device.use ? use_text(*device.use) : "";
    if (!text.empty()) system::print("  GPU {}: {}\n", device.index, text);
  }
  if (!list.sums.empty()) system::print("  Sums over several: {}\n", list.sums);
}

nlohmann::ordered_json use_json(const compute::DeviceUse& use) {
  const auto free_bytes =
      use.free_memory ? nlohmann::ordered_json(*use.free_memory) : nlohmann::ordered_json();
  return {{"busy_percent", known(use.busy_percent)},
          {"processes", known(use.processes)},
          {"free_bytes", free_bytes},
          {"links", use.links}};
}

nlohmann::ordered_json device_json(const compute::DeviceList& list) {
  nlohmann::ordered_json json{{"available", !list.devices.empty()}};
  if (list.devices.empty()) {
    json["reason"] = list.why_none;
    json["remedy"] = list.remedy;
  }
  for (const compute::Device& device : list.devices) {
    nlohmann::ordered_json of_device{
        {"name", device.name}, {"facts", device.facts}, {"emulated", device.emulated}};
    if (device.use) of_device["use"] = use_json(*device.use);
    json["devices"].push_back(std::move(of_device));
  }
  if (!list.sums.empty()) json["sums"] = list.sums;
  return json;
}

void add_info_flags(cli::Flags& f, cli::Options& options, const cli::CommandLineChoices& choices) {
  add_model_flags(f, options);
  add_machine_flags(f, options, choices);
  add_json_flag(f, options.json);
}

ExitCode run_info(const cli::Options& options, const training::Services& services) {
  const training::TrainingSpec spec = training::choose_training(options);
  const model::Graph graph =
      training::build_graph(spec, options.classes.value_or(spec.model->recipe.classes));
  const training::Session session = training::start_session(options, services);
  const std::vector<placement::LaunchLine> launches =
      launch_lines_here(session, services, options.program);
  const std::map<std::string, compute::DeviceList> devices = devices_here(services);
  if (session.leads() && options.prints()) {
    system::print("cputrain {}\n", kVersion);
    system::print_lines(machine_text(session.machine));
    std::string before = "Placement: ";
    for (const auto& lines : {session.placement, placement::map_of(session.plan)}) {
      for (const std::string& line : lines)
        system::print("{}{}\n", std::exchange(before, "  "), line);
    }
    system::print_lines(launch_text(launches));
    system::print("Backend: {}\nRanks: {}\nLibraries: {}\n", session.backend->facts().description,
                  session.communicator->describe(), join(services.libraries, ", "));
    for (const auto& [backend, list] : devices) print_devices(backend, list);
    system::print("\nModel {}: {}\n", spec.model->name, spec.model->description);
    system::print_lines(model::summary_text(graph));
    system::print("Recipe: {}, batch {}, {} (learning rate {:g}), {} epochs; source: {}\n",
                  fmt::format("{0}x{0}", spec.image.height), spec.batch,
                  optim::rule_name(spec.optimizer.rule), spec.learning_rate.base, spec.epochs,
                  spec.model->recipe.source);
  }
  nlohmann::ordered_json model = model::summary_json(graph);
  model["name"] = spec.model->name;
  model["recipe"] = {{"batch", spec.batch},
                     {"optimizer", optim::rule_name(spec.optimizer.rule)},
                     {"state_arrays", optim::state_arrays(spec.optimizer.rule)}};
  nlohmann::ordered_json result{{"cputrain", kVersion},
                                {"model", std::move(model)},
                                {"machine", training::machine_json(session.machine)},
                                {"placement", session.placement},
                                {"map", training::placement_json(session.plan)},
                                {"launch", launch_json(launches)},
                                {"threads", session.threads},
                                {"ranks", session.communicator->size()},
                                {"backend", session.backend->facts().description},
                                {"libraries", services.libraries}};
  for (const auto& [backend, list] : devices) result[backend] = device_json(list);
  training::write_json(session, options.json, result);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<cli::Command> make_info() {
  return cli::make_command<>(
      {.help = {.name = "info",
                .summary = "this machine, placement, libraries, and the layers of a model",
                .about = "Describes this machine, the placement of ranks, the libraries, and the "
                         "layers of a model.",
                .examples = {{"cputrain info --model resnet50v2 --classes 10",
                              "Lists the layers with their parameters and work."},
                             {"mpirun -np 2 cputrain info",
                              "Shows which cores each of two ranks would get."}},
                .common = {"model", "image-size", "classes", "backend", "threads", "json"},
                .others = "summary,describe,doctor,env,checks,settings,devices,machine"},
       .task = {.trains = false, .computes = false, .one_job = false},
       .add_flags = add_info_flags,
       .run = run_info});
}

}  // namespace cputrain::commands
