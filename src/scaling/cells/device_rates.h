#pragma once

#include "scaling/cells/cells.h"

/// What parts of a GPU's rates a cell reaches, where multiply-adds are those of direct convolution;
/// and how many CPUs are as quick as a cell of GPUs, by the cells of one row of CPUs.
namespace cputrain::cells {

/// By the maker's data sheet: dense products, without sparsity.
struct ChipRates {
  std::string_view name;  ///< as the driver says it
  double tf32_gflops = 0, bf16_gflops = 0;
  double memory_gbs = 0;
};
/// Nothing for chips that are not in the list.
std::optional<ChipRates> chip_rates(const std::string& device);

/// Parts of 1, nothing where a figure of it is missing, and for cells of CPUs: of what the chips'
/// tensor cores do on paper; and counted bytes, of the bandwidth measured beside it.
std::optional<double> chip_share(const CellTable&, const Cell&);
std::optional<double> memory_share(const CellTable&, const Cell&);

/// Bytes a second that a cell of GPUs moves at the least, where each map that weights are learnt
/// from is written once, read forward and back, its gradient written and read, and parameters move
/// as often as an update needs. Nothing where the table does not say the maps, and where layers are
/// frozen.
std::optional<double> counted_bytes(const CellTable&, const Cell&);

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
  /// Where the most CPUs are slower: as many if each more were as good as the first of the row,
  /// which is the least; and if times went on as between the last two, 0 where these do not fall.
  double perfect = 0, continued = 0;
  bool repeated = false;  ///< all cells have several repeats; else nothing is known of both
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
