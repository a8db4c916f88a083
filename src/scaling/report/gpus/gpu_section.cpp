// What only GPUs have: CPUs that are as quick, and parts of the rates of a GPU.

#include <fmt/format.h>

#include <algorithm>

#include "scaling/report/gpus/beside_cpus.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/report_sections.h"
#include "training/request/backend_words.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

cells::CellStatus status_of_cell(const ScalingCell& c) { return c.cell.status; }
cells::CellStatus status_of_speed_up(const ScalingCell& c) {
  return c.against_cpus->speed_up_status;
}
cells::CellStatus status_of_equal(const ScalingCell& c) { return c.against_cpus->equal.status; }

std::string percent_text(double part) { return fmt::format("{:.1f}", 100 * part); }

ScalingTable devices_of(const ScalingTable& table) {
  ScalingTable devices;
  std::ranges::copy_if(table.series, std::back_inserter(devices.series),
                       [](const Series& s) { return training::is_device(s.backend); });
  return devices;
}

void append(std::vector<DocumentTable>& to, std::vector<DocumentTable> from) {
  for (DocumentTable& table : from) to.push_back(std::move(table));
}

/// "(58.2 to 70.1)"; empty where the repeats are too few.
std::string range_beside(const cells::EqualCpus& equal) {
  const std::string text = cpu_range_text(equal);
  return text.empty() ? "" : "(" + text + ")";
}

void add_beside(const ScalingTable& devices, std::vector<DocumentTable>& tables) {
  append(tables, grid_tables(devices, &Series::strong,
                             {.caption = "Times as quick as one CPU at the same batch",
                              .value = [](const ScalingCell& c) -> Value {
                                if (!c.against_cpus) return std::nullopt;
                                return c.against_cpus->speed_up;
                              },
                              .status = status_of_speed_up}));
  const auto within = [](const ScalingCell& c) {
    return c.against_cpus && c.against_cpus->equal.cpus.place == cells::CpuCount::Place::within;
  };
  append(tables,
         grid_tables(devices, &Series::strong,
                     {.caption = "CPUs that are as quick at the same batch",
                      .value = [within](const ScalingCell& c) -> Value {
                        if (!within(c)) return std::nullopt;
                        return c.against_cpus->equal.cpus.cpus;
                      },
                      .status = status_of_equal,
                      .beside =
                          [within](const ScalingCell& c) {
                            return within(c) ? range_beside(c.against_cpus->equal) : "";
                          },
                      .words =
                          [](const ScalingCell& c) {
                            return c.against_cpus ? cpu_count_text(c.against_cpus->equal.cpus) : "";
                          }}));
}

void add_shares(const ScalingTable& devices, std::vector<DocumentTable>& tables) {
  const auto add = [&](const char* caption, Value cells::RateShares::*share) {
    append(tables,
           both_grids(devices, {.caption = caption,
                                .value = [share](const ScalingCell& c) { return c.rates.*share; },
                                .status = status_of_cell,
                                .text = percent_text}));
  };
  add("Share (%) of what mma.sync multiplies and adds, measured beside it",
      &cells::RateShares::mma);
  add("Share (%) of what the chip's tensor cores do by its data sheet", &cells::RateShares::chip);
  add("Share (%) of the GPUs' memory bandwidth (triad), measured beside it, by counted bytes",
      &cells::RateShares::memory);
}

bool any_share(const ScalingTable& devices, Value cells::RateShares::*share) {
  bool found = false;
  devices.for_each(
      [&](const Series&, const ScalingCell& c) { found |= (c.rates.*share).has_value(); });
  return found;
}

/// What is compared with what, and rows that have no time of one CPU.
void say_partners(const ScalingTable& devices, std::vector<std::string>& remarks) {
  for (const Series& series : devices.series) {
    if (series.beside.empty()) continue;
    remarks.push_back(
        fmt::format("{}: {}, beside CPUs of {}.", series.name, device_text(series), series.beside));
    for (const GridRow& row : series.strong.rows) {
      for (const int count : series.strong.cpus) {
        const ScalingCell* here = series.strong.at(row, count);
        if (!here || !here->against_cpus) continue;
        const int cpus = here->against_cpus->cpus;
        if (cpus == 1) break;
        remarks.push_back(
            fmt::format("{}, batch {}: no time of one CPU is there, so times as quick as {} CPUs.",
                        series.name, row_text(row), cpus));
        break;
      }
    }
  }
}

}  // namespace

MaybeSection gpu_section(const ScalingTable& table) {
  const ScalingTable devices = devices_of(table);
  Section section{"gpus", "GPUs beside CPUs, and their rates"};
  add_beside(devices, section.tables);
  const bool compared = !section.tables.empty();
  add_shares(devices, section.tables);
  if (section.tables.empty()) return std::nullopt;
  if (compared) {
    say_partners(devices, section.remarks);
    section.remarks.push_back(
        "Between two measured numbers of CPUs, times follow a power law. Beyond the last one "
        "nothing is assumed. The range is that of the repeats: the GPUs' slowest beside the CPUs' "
        "quickest, and the reverse.");
  }
  if (any_share(devices, &cells::RateShares::mma)) {
    section.remarks.push_back(
        "mma.sync is the instruction that the kernels use, in the numbers of the cell. Chips since "
        "Hopper do more by another one (wgmma). Exact products count once, though they take "
        "three of TF32.");
  }
  if (any_share(devices, &cells::RateShares::memory)) {
    section.remarks.push_back(
        "Counted bytes are the least: maps that weights are learnt from move five times, with "
        "their gradients, and parameters six times a step. Images and other maps are not counted.");
  }
  return section;
}

}  // namespace cputrain::report
