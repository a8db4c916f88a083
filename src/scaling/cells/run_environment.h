#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/cells/cells.h"

/// What a run's environment.json, which may be hostile, says of what trained: devices, machine,
/// build.
namespace cputrain::cells {

/// What the ranks of a training computed on together.
struct RunDevices {
  int count = 0;              ///< of GPUs; 0 where there were none, or it is not known
  std::string name{};         ///< the same for all of them
  bool emulated = false;      ///< then none of its times means anything
  placement::CpuId cpu_id{};  ///< rank 0's
};

/// None where the file is missing or damaged.
RunDevices devices_of_run(const std::filesystem::path& run);

/// Gives a cell what its repeats say: the CPU that all of them name, and of devices the fewest and
/// all names.
void combine_devices(Cell&, const std::vector<RunDevices>&);

/// "cuda: 8 x NVIDIA H100 80GB HBM3": the most that a cell of the table has of each kind; empty
/// where no name is known.
std::string devices_text(const CellTable&);

/// "Open MPI 4.1.4" among the libraries of a build; empty where it has none.
std::string mpi_library(const std::vector<std::string>& libraries);
/// "cputrain 1.0; oneDNN 2.6.3, ...".
std::string build_text(std::string_view version, const std::vector<std::string>& libraries);

/// Nothing where it names no machine. Error(data), naming `where`, for anything odd.
std::optional<CellMachine> machine_of_run(const nlohmann::json& environment,
                                          const std::string& where);

}  // namespace cputrain::cells
