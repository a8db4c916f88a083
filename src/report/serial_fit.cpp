#include "report/serial_fit.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cells/cells.h"
#include "core/statistics.h"

namespace cputrain::report {
namespace {

constexpr std::size_t kLeastTimes = 4, kLeastCounts = 3;

bool can_be_fitted(std::span<const CoreTime> times) {
  std::set<double> counts;
  for (const auto& [cores, seconds] : times) {
    if (!(cores > 0) || !(seconds > 0)) return false;
    counts.insert(cores);
  }
  return times.size() >= kLeastTimes && counts.size() >= kLeastCounts;
}

}  // namespace

std::optional<SerialFit> fit_serial_and_work(std::span<const CoreTime> times) {
  if (!can_be_fitted(times)) return std::nullopt;
  std::vector<double> parts, seconds_of;
  for (const auto& [cores, seconds] : times) {
    parts.push_back(1 / cores);
    seconds_of.push_back(seconds);
  }
  const Line line = fit_line(parts, seconds_of);
  SerialFit fit{line.fixed, line.each, 0, times.size()};
  if (!(fit.work > 0)) return std::nullopt;
  for (const auto& [cores, seconds] : times) {
    const double deviation = std::fabs(fit.serial + fit.work / cores - seconds) / seconds;
    fit.largest_deviation = std::max(fit.largest_deviation, deviation);
  }
  return fit;
}

namespace {

void add_published(const ReferenceTable& reference, std::vector<FittedRow>& rows) {
  for (const std::size_t batch : reference.batches) {
    for (const int cpus_per_core : {2, 1}) {
      std::vector<CoreTime> times;
      for (const int cpus : reference.cpus) {
        const auto seconds = reference.at(batch, cpus);
        if (seconds) times.push_back({1.0 * cells::cores_of(cpus, cpus_per_core), *seconds});
      }
      if (const auto fit = fit_serial_and_work(times)) {
        rows.push_back({nullptr, batch, cpus_per_core, *fit, cells::CellStatus::measured});
      }
    }
  }
}

/// Ranks fill cores before they fill hardware threads. 0: not on one machine, or sharing threads.
int cores_on(const cells::CellMachine& machine, int cpus) {
  if (machine.hardware_threads > 0 && cpus > machine.hardware_threads) return 0;
  if (machine.cpus_per_core > 0) return cells::cores_of(cpus, machine.cpus_per_core);
  return machine.cores > 0 ? std::min(cpus, machine.cores) : cpus;
}

std::optional<FittedRow> own_row(const Series& series, const GridRow& row) {
  FittedRow fitted{&series, row.batch, std::max(1, series.about.machine.cpus_per_core), {}, {}};
  fitted.status = cells::CellStatus::measured;
  std::vector<CoreTime> times;
  for (const int cpus : series.strong.cpus) {
    const ScalingCell* cell = series.strong.at(row, cpus);
    if (!cell || !cell->cell.seconds_per_epoch) continue;
    const int cores = cores_on(series.about.machine, cpus);
    if (cores == 0) return std::nullopt;
    times.push_back({1.0 * cores, *cell->cell.seconds_per_epoch});
    fitted.status = std::max(fitted.status, cell->cell.status);
  }
  const auto fit = fit_serial_and_work(times);
  if (!fit) return std::nullopt;
  fitted.fit = *fit;
  return fitted;
}

}  // namespace

std::vector<FittedRow> fitted_rows(const ScalingTable& table,
                                   const std::optional<ReferenceTable>& reference) {
  std::vector<FittedRow> rows;
  if (reference) add_published(*reference, rows);
  for (const Series& series : table.series) {
    if (cells::is_device(series.backend)) continue;
    for (const GridRow& row : series.strong.rows) {
      if (auto fitted = own_row(series, row)) rows.push_back(*fitted);
    }
  }
  return rows;
}

}  // namespace cputrain::report
