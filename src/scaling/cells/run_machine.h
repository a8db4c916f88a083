#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/cells/cells.h"

/// The machine and the build that trained, as tables have them.
namespace cputrain::cells {

/// "Open MPI 4.1.4" among the libraries of a build; empty where it has none.
std::string mpi_library(const std::vector<std::string>& libraries);
/// "cputrain 1.0; oneDNN 2.6.3, ...".
std::string build_text(std::string_view version, const std::vector<std::string>& libraries);

/// What a run's environment.json, which may be hostile, says of both; nothing where it names no
/// machine. Error(data), naming `where`, for anything odd.
std::optional<CellMachine> machine_of_run(const nlohmann::json& environment,
                                          const std::string& where);

}  // namespace cputrain::cells
