#pragma once

#include <vector>

#include "scaling/cells/cells.h"

/// How many CPUs are as quick as a cell of GPUs, by the cells of one row of CPUs.
namespace cputrain::cells {

/// A number of CPUs on a measured row. Beyond its ends nothing is computed: `cpus` is then the end.
struct CpuCount {
  enum class Place { within, fewer, more };
  double cpus = 0;
  Place place = Place::within;
};

/// By the medians, and between what that lies by the repeats: the least is the GPUs' slowest repeat
/// beside the CPUs' quickest ones, the most the reverse.
struct EqualCpus {
  CpuCount cpus{}, least{}, most{};
  bool repeated = false;  ///< of all cells there are several repeats; else nothing is known of both
  CellStatus status = CellStatus::measured;  ///< the least certain of all of them
};

/// The first place, from the fewest CPUs on, where a row takes no longer than `seconds`: a power
/// law runs between two neighbouring numbers of CPUs (a straight line of the logarithms), so that a
/// row that scales perfectly has its own law. `cpus` is ascending, with a time for each.
CpuCount cpus_for(const std::vector<double>& cpus, const std::vector<double>& times,
                  double seconds);

/// Cells with a time: of GPUs, and of a row of CPUs with the same work, ascending by CPUs.
EqualCpus equal_cpus(const Cell& gpus, const std::vector<const Cell*>& row);

}  // namespace cputrain::cells
