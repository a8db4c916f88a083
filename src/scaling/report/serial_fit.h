#pragma once

#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

/// What a row of times says by itself: how much of it more cores do not shorten (Amdahl, 1967).
namespace cputrain::report {

/// seconds = serial + work / cores.
struct SerialFit {
  double serial = 0;             ///< seconds
  double work = 0;               ///< core seconds
  double largest_deviation = 0;  ///< the fit's from a time, as a part of that time
  std::size_t times = 0;
};

/// Fits a time for each number of cores by the least squares of relative deviations: weights are
/// 1 / seconds^2, so that short times count as much as long ones. `serial` is never below 0.
/// Nothing for fewer than four times, for fewer than three numbers of cores, for a time or number
/// of cores that is not above 0, and where times grow with the cores.
std::optional<SerialFit> fit_serial_and_work(const std::vector<double>& cores,
                                             const std::vector<double>& seconds);

/// The fit of a row of batches, of the published table or of a series of ours.
struct FittedRow {
  const Series* series = nullptr;  ///< nullptr: published
  std::size_t batch = 0;
  int cpus_per_core = 1;
  SerialFit fit{};
  cells::CellStatus status = cells::CellStatus::measured;  ///< the least certain of the times
};

/// All rows that can be fitted: the published ones for two CPUs a core (virtual CPUs are hardware
/// threads) and for one, since a table does not say which; ours by the cores that they ran on.
/// Left out are devices, weak scaling, and rows with more CPUs than the machine has, which are of
/// several machines or share hardware threads.
std::vector<FittedRow> fitted_rows(const ScalingTable&, const std::optional<ReferenceTable>&);

}  // namespace cputrain::report
