#include "scaling/report/serial_fit.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "scaling/cells/cells.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

constexpr std::size_t kLeastTimes = 4, kLeastCounts = 3;

bool can_be_fitted(const std::vector<double>& cores, const std::vector<double>& seconds) {
  const auto is_sound = [](double value) { return value > 0; };
  return std::ranges::all_of(cores, is_sound) && std::ranges::all_of(seconds, is_sound) &&
         seconds.size() >= kLeastTimes &&
         std::set<double>(cores.begin(), cores.end()).size() >= kLeastCounts;
}

void add_published(const ReferenceTable& reference, std::vector<FittedRow>& rows) {
  for (const std::size_t batch : reference.batches) {
    for (const int cpus_per_core : {2, 1}) {
      std::vector<double> cores, times;
      for (const int cpus : reference.cpus) {
        const auto seconds = reference.at(batch, cpus);
        if (!seconds) continue;
        cores.push_back(cells::cores_of(cpus, cpus_per_core));
        times.push_back(*seconds);
      }
      if (const auto fit = fit_serial_and_work(cores, times)) {
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
  FittedRow fitted{&series, row.batch, std::max(1, series.about.machine.cpus_per_core)};
  std::vector<double> cores, times;
  for (const cells::Cell* cell : series.strong.timed(row)) {
    cores.push_back(cores_on(series.about.machine, cell->cpus));
    if (cores.back() == 0) return std::nullopt;
    times.push_back(*cell->seconds_per_epoch);
    fitted.status = std::max(fitted.status, cell->status);
  }
  const auto fit = fit_serial_and_work(cores, times);
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
  row.entries.push_back({figure_text(fit.serial), mark});
  row.entries.push_back({figure_text(fit.work), mark});
  row.entries.push_back({percent_text(fit.largest_deviation)});
}

const FittedRow* find(const std::vector<FittedRow>& rows, const Series* series, std::size_t batch,
                      int cpus_per_core) {
  const auto found = std::ranges::find_if(rows, [&](const FittedRow& row) {
    return row.series == series && row.batch == batch && row.cpus_per_core == cpus_per_core;
  });
  return found == rows.end() ? nullptr : &*found;
}

/// How the CPUs of a published table (nullptr) or of a series are counted as cores: where ranks
/// filled all that the machine has, the further ones share them.
std::string reading_text(const Series* series, int cpus_per_core) {
  if (cpus_per_core > 1) return fmt::format("cores = max(1, CPUs / {})", cpus_per_core);
  if (!series || series->strong.cpus.empty()) return "cores = CPUs";
  const cells::CellMachine& machine = series->about.machine;
  const bool shared =
      machine.cpus_per_core == 0 && machine.cores > 0 && series->strong.cpus.back() > machine.cores;
  return "cores = CPUs" + (shared ? fmt::format(", {} at most", machine.cores) : "");
}

/// A row's fits for so many CPUs a core each.
DocumentTable fits_table(const std::string& whose, const std::vector<FittedRow>& rows,
                         const Series* series, const std::vector<int>& cpus_per_core) {
  DocumentTable table{.caption = "Fit of " + whose + ": seconds per epoch = serial + work / cores",
                      .corner = "batch"};
  for (const int each : cpus_per_core) {
    table.groups.emplace_back(reading_text(series, each), 3);
    add_all(table.head, {"serial (s)", "work (core s)", "largest deviation (%)"});
  }
  std::set<std::size_t> batches;
  for (const FittedRow& row : rows) {
    if (row.series == series) batches.insert(row.batch);
  }
  for (const std::size_t batch : batches) {
    Row& row = table.rows.emplace_back(Row{std::to_string(batch)});
    for (const int each : cpus_per_core) add_entries(row, find(rows, series, batch, each));
  }
  return table;
}

}  // namespace

std::optional<SerialFit> fit_serial_and_work(const std::vector<double>& cores,
                                             const std::vector<double>& seconds) {
  if (!can_be_fitted(cores, seconds)) return std::nullopt;
  std::vector<double> parts;
  for (const double count : cores) parts.push_back(1 / count);
  const Line line = fit_line(parts, seconds);
  SerialFit fit{line.fixed, line.each, 0, seconds.size()};
  if (!(fit.work > 0)) return std::nullopt;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double deviation = std::fabs(fit.serial + fit.work / cores[i] - seconds[i]) / seconds[i];
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
    section.tables.push_back(fits_table(reference->name, rows, nullptr, {2, 1}));
    section.remarks.push_back(
        "The published table does not say whether a CPU is a core or a hardware thread of one: the "
        "reading with the smaller deviations is the likelier. Rows without a time of one CPU fit "
        "both alike: on half of the cores it is half of the work.");
  }
  for (const Series& series : table.series) {
    if (!whose.contains(&series)) continue;
    const int cpus_per_core = std::max(1, series.about.machine.cpus_per_core);
    section.tables.push_back(fits_table(series.name, rows, &series, {cpus_per_core}));
  }
  return section;
}

}  // namespace cputrain::report
