#include "scaling/report/serial_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/statistics/statistics.h"
#include "scaling/cells/cells.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"
#include "training/request/flag_grammars.h"

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

/// Serial part, work and the largest deviation; nothing where a row has no fit.
void add_entries(Row& row, const FittedRow* fitted) {
  if (!fitted) {
    row.entries.resize(row.entries.size() + 3);
    return;
  }
  const std::string status = mark_of(fitted->status);
  const std::string mark = status.empty() ? "fit" : "fit, " + status;
  const SerialFit& fit = fitted->fit;
  row.entries.push_back({figure_text(fit.serial), mark, 0});
  row.entries.push_back({figure_text(fit.work), mark, 0});
  row.entries.push_back({fmt::format("{:.1f}", 100 * fit.largest_deviation), "", 0});
}

void add_head(DocumentTable& table) {
  for (const char* head : {"serial (s)", "work (core s)", "largest deviation (%)"}) {
    table.head.emplace_back(head);
  }
}

const FittedRow* find(const std::vector<FittedRow>& rows, const Series* series, std::size_t batch,
                      int cpus_per_core) {
  const auto found = std::ranges::find_if(rows, [&](const FittedRow& row) {
    return row.series == series && row.batch == batch && row.cpus_per_core == cpus_per_core;
  });
  return found == rows.end() ? nullptr : &*found;
}

/// How CPUs are counted as cores.
struct Reading {
  int cpus_per_core;
  int most_cores = 0;  ///< that the machine has; 0: as many as it takes
};

std::string text_of(const Reading& reading) {
  const std::string most =
      reading.most_cores > 0 ? fmt::format(", {} at most", reading.most_cores) : "";
  if (reading.cpus_per_core == 1) return "cores = CPUs" + most;
  return fmt::format("cores = max(1, CPUs / {}){}", reading.cpus_per_core, most);
}

/// Where ranks filled all cores, the further ones share them.
Reading reading_of(const Series& series) {
  const cells::CellMachine& machine = series.about.machine;
  const int most = series.strong.cpus.empty() ? 0 : series.strong.cpus.back();
  if (machine.cpus_per_core > 0) return {machine.cpus_per_core};
  return {1, machine.cores > 0 && most > machine.cores ? machine.cores : 0};
}

/// A row's fits for each of these readings of a CPU.
DocumentTable fits_table(const std::string& whose, const std::vector<FittedRow>& rows,
                         const Series* series, const std::vector<Reading>& readings) {
  DocumentTable table;
  table.caption = "Fit of " + whose + ": seconds per epoch = serial + work / cores";
  table.corner = "batch";
  for (const Reading& reading : readings) {
    table.groups.emplace_back(text_of(reading), 3);
    add_head(table);
  }
  std::set<std::size_t> batches;
  for (const FittedRow& row : rows) {
    if (row.series == series) batches.insert(row.batch);
  }
  for (const std::size_t batch : batches) {
    Row& row = table.rows.emplace_back(Row{std::to_string(batch), {}, false});
    for (const Reading& reading : readings) {
      add_entries(row, find(rows, series, batch, reading.cpus_per_core));
    }
  }
  return table;
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

std::vector<FittedRow> fitted_rows(const ScalingTable& table,
                                   const std::optional<ReferenceTable>& reference) {
  std::vector<FittedRow> rows;
  if (reference) add_published(*reference, rows);
  for (const Series& series : table.series) {
    if (training::is_device(series.backend)) continue;
    for (const GridRow& row : series.strong.rows) {
      if (auto fitted = own_row(series, row)) rows.push_back(*fitted);
    }
  }
  return rows;
}

Section fit_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  const std::optional<ReferenceTable>& reference = facts.reference;
  const std::vector<FittedRow> rows = fitted_rows(table, reference);
  if (rows.empty()) return {};
  Section section{"fit",
                  "What more cores do not shorten, by a fit",
                  {"A fit, no measurement: by the least squares of relative deviations over the "
                   "times of a row, where there are four at least. The serial part is the plateau "
                   "that more cores lead to."}};
  std::set<const Series*> whose;
  for (const FittedRow& row : rows) whose.insert(row.series);
  if (whose.contains(nullptr)) {
    section.tables.push_back(fits_table(reference->name, rows, nullptr, {{2}, {1}}));
    section.remarks.push_back(
        "The published table does not say whether a CPU is a core or a hardware thread of one: the "
        "reading with the smaller deviations is the likelier. Rows without a time of one CPU fit "
        "both alike: on half of the cores it is half of the work.");
  }
  for (const Series& series : table.series) {
    if (!whose.contains(&series)) continue;
    section.tables.push_back(fits_table(series.name, rows, &series, {reading_of(series)}));
  }
  return section;
}

}  // namespace cputrain::report
