#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scaling/cells/cells.h"

namespace cputrain::cells {

/// What the ranks of a training computed on together, where that were no CPUs.
struct RunDevices {
  int count = 0;          ///< 0 where there were none, or nobody says
  std::string name{};     ///< of all of them
  bool emulated = false;  ///< then none of its times means anything
};

/// What a run's environment.json, which may be hostile, says of them; nothing where it is missing
/// or damaged.
RunDevices devices_of_run(const std::filesystem::path& run);

/// Gives a cell of devices what its repeats say: the fewest, and all names. Others stay as they
/// are.
void combine_devices(Cell&, const std::vector<RunDevices>&);

/// "cuda: 8 x NVIDIA H100 80GB HBM3": the most that a cell of the table has of each kind; empty
/// where no name is known.
std::string devices_text(const CellTable&);

}  // namespace cputrain::cells
