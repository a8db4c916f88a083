#include "scaling/cells/run_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/text.h"
#include "scaling/cells/cell_reader.h"

namespace cputrain::cells {

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
  constexpr std::int64_t kMostCount = 1 << 24;
  constexpr std::size_t kLongestBuild = 1 << 14;  // shorter than what tables hold
  const CellReader own(environment, where);
  const nlohmann::json* object = own.object("machine");
  if (!object) return std::nullopt;
  const CellReader machine(*object, where + ", machine");
  const auto count = [&](const char* key) {
    return static_cast<int>(machine.whole(key, 0, kMostCount).value_or(0));
  };
  const std::vector<std::string> libraries = own.texts("libraries");
  std::string build = build_text(own.text("cputrain"), libraries);
  if (build.size() > kLongestBuild) own.wrong("libraries are too long a text");
  return CellMachine{.cpu = machine.text("cpu"),
                     .host = machine.text("host"),
                     .mpi = mpi_library(libraries),
                     .build = std::move(build),
                     .cores = count("cores"),
                     .hardware_threads = count("hardware_threads"),
                     .memory_bytes = 1e9 * machine.real("memory_gb", 0, 1e9).value_or(0)};
}

}  // namespace cputrain::cells
