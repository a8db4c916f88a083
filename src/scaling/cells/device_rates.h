#pragma once

#include <optional>
#include <string>

#include "scaling/cells/cells.h"

/// What parts of a GPU's rates a cell reaches. Multiply-adds are those of direct convolution.
namespace cputrain::cells {

/// By the maker's data sheet: dense products, without sparsity.
struct ChipRates {
  double tf32_gflops = 0, bf16_gflops = 0;
  double memory_gbs = 0;
};
/// By the name that the driver gives; nothing for chips that are not in the list.
std::optional<ChipRates> chip_rates(const std::string& device);

/// Parts of 1, each nothing where a figure of it is missing, and for cells of CPUs.
struct RateShares {
  std::optional<double> mma;   ///< of mma.sync in the cell's numbers, measured beside it
  std::optional<double> chip;  ///< of the chips' tensor cores on paper
  /// Counted bytes, of the bandwidth measured beside it: those that move at the least.
  std::optional<double> memory;
};
RateShares shares_of(const CellTable&, const Cell&);

/// Bytes a second that a cell of GPUs moves at the least, where each map that weights are learnt
/// from is written once, read forward and back, its gradient written and read, and parameters move
/// as often as an update needs. Nothing where the table does not say the maps, and where layers are
/// frozen.
std::optional<double> counted_bytes(const CellTable&, const Cell&);

}  // namespace cputrain::cells
