#include "scaling/cells/run_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "system/bounded_file.h"
#include "training/request/flag_grammars.h"

namespace cputrain::cells {
namespace {

/// Leaves out what no table can hold.
void read_gpus(const nlohmann::json& gpus, RunDevices& devices) {
  constexpr int kMostDevices = 1 << 24;
  constexpr std::size_t kLongestName = 1 << 10;
  const auto count = gpus.at("count").get<std::int64_t>();
  if (count >= 1 && count <= kMostDevices) devices.count = static_cast<int>(count);
  const auto& name = gpus.at("name").get_ref<const std::string&>();
  if (name.size() <= kLongestName) devices.name = name;
}

placement::CpuId cpu_id_of(const JsonFields& machine) {
  placement::CpuId id;
  JsonMembers members(machine);
  placement::describe_cpu_id(members, id);
  return id;
}

/// Nothing where two of them differ, as one name would be wrong for some.
placement::CpuId common_cpu(const std::vector<RunDevices>& repeats) {
  const bool alike = std::ranges::all_of(
      repeats, [&](const RunDevices& devices) { return devices.cpu_id == repeats.front().cpu_id; });
  return alike && !repeats.empty() ? repeats.front().cpu_id : placement::CpuId{};
}

}  // namespace

RunDevices devices_of_run(const std::filesystem::path& run) {
  constexpr std::uintmax_t kMostBytes = 16 << 20;
  RunDevices devices;
  try {
    const nlohmann::json environment =
        parse_strict_json(system::read_bounded(run / "environment.json", kMostBytes));
    devices.emulated = environment.value("emulated", false);
    if (environment.contains("gpus")) read_gpus(environment.at("gpus"), devices);
    if (environment.contains("machine")) {
      devices.cpu_id = cpu_id_of({environment.at("machine"), "machine", kTableRemedy});
    }
  } catch (const std::exception&) {
    // It then says no more than what was read.
  }
  return devices;
}

void combine_devices(Cell& cell, const std::vector<RunDevices>& repeats) {
  cell.cpu_id = common_cpu(repeats);
  if (!training::is_device(cell.backend)) return;
  std::set<std::string> names;
  for (const RunDevices& devices : repeats) {
    if (devices.count > 0) cell.gpus = std::min(cell.gpus, devices.count);
    if (!devices.name.empty()) names.insert(devices.name);
  }
  cell.device = join(std::vector<std::string>(names.begin(), names.end()), " and ");
}

std::string devices_text(const CellTable& table) {
  std::map<std::pair<std::string, std::string>, int> most;
  for (const Cell& c : table.cells) {
    if (c.device.empty()) continue;
    int& count = most[{c.backend, c.device}];
    count = std::max(count, c.gpus);
  }
  std::vector<std::string> parts;
  for (const auto& [which, count] : most) {
    parts.push_back(fmt::format("{}: {} x {}", which.first, count, which.second));
  }
  return join(parts, "; ");
}

std::string mpi_library(const std::vector<std::string>& libraries) {
  const auto found = std::ranges::find_if(
      libraries, [](const std::string& name) { return name.starts_with("Open MPI"); });
  return found == libraries.end() ? "" : *found;
}

std::string build_text(std::string_view version, const std::vector<std::string>& libraries) {
  return fmt::format("cputrain {}; {}", version, join(libraries, ", "));
}

std::optional<CellMachine> machine_of_run(const nlohmann::json& environment,
                                          const std::string& where) {
  constexpr int kMostCount = 1 << 24;
  constexpr std::size_t kMostLibraries = 100'000;
  constexpr std::size_t kLongestBuild = 1 << 14;  // shorter than what tables hold
  const JsonFields own(environment, where, kTableRemedy);
  if (!own.has("machine")) return std::nullopt;
  const JsonFields machine = own.object("machine");
  const auto count = [&](const char* key) { return machine.whole(key, 0, kMostCount, 0); };
  const auto libraries =
      own.has("libraries") ? own.texts("libraries", kMostLibraries) : std::vector<std::string>();
  std::string build = build_text(own.text("cputrain", ""), libraries);
  if (build.size() > kLongestBuild) own.wrong("libraries are too long a text");
  return CellMachine{.cpu = machine.text("cpu", ""),
                     .cpu_id = cpu_id_of(machine),
                     .host = machine.text("host", ""),
                     .mpi = mpi_library(libraries),
                     .build = std::move(build),
                     .cores = count("cores"),
                     .hardware_threads = count("hardware_threads"),
                     .memory_bytes = 1e9 * machine.real("memory_gb", 0, 1e9, 0)};
}

}  // namespace cputrain::cells
