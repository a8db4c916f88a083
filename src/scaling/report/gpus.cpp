// GPUs beside CPUs that do the same work.

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

using End = cells::CpuCount::Place;

/// "NVIDIA H100 80GB HBM3"; what the backend is called where the name is not known.
std::string device_text(const Series& series) {
  return series.identity.device.empty() ? series.name : series.identity.device;
}

/// "63.1", "more than 96", "fewer than 1".
std::string cpu_count_text(const cells::CpuCount& count) {
  if (count.place == End::within) return figure_text(count.cpus);
  return fmt::format("{} than {:.0f}", count.place == End::fewer ? "fewer" : "more", count.cpus);
}

/// " (98.6 to 242 by extrapolation)" beyond the row; empty within.
std::string extrapolated_text(const cells::EqualCpus& equal) {
  if (equal.cpus.place != End::more) return "";
  const std::string least = figure_text(equal.perfect), most = figure_text(equal.continued);
  return fmt::format(" ({} by extrapolation)", equal.continued > equal.perfect && most != least
                                                   ? least + " to " + most
                                                   : least + " or more");
}

/// "58.2 to 70.1"; empty where the repeats are too few, and where all of it is beyond the row's
/// end.
std::string range_within(const cells::EqualCpus& equal) {
  if (!equal.repeated || equal.least.place == End::more) return "";
  const std::string least = cpu_count_text(equal.least), most = cpu_count_text(equal.most);
  return least == most ? least : least + " to " + most;
}

/// "One NVIDIA H100", "4 x NVIDIA H100".
std::string counted_devices(const Series& series, int count) {
  return count == 1 ? "One " + device_text(series)
                    : fmt::format("{} x {}", count, device_text(series));
}

/// The cells of the fewest GPUs that stand beside CPUs, by batch: of four batches at most, else of
/// the smallest and the largest.
std::vector<const ScalingCell*> samples_of(const Series& series) {
  constexpr std::size_t kMostBatches = 4;
  std::vector<const ScalingCell*> samples;
  for (const int count : series.strong.cpus) {
    for (const GridRow& row : series.strong.rows) {
      const ScalingCell* here = series.strong.at(row, count);
      if (here && here->against_cpus) samples.push_back(here);
    }
    if (!samples.empty()) break;
  }
  if (samples.size() > kMostBatches) return {samples.front(), samples.back()};
  return samples;
}

/// "63.1 CPUs of cpu at batch 1024 (58.2 to 70.1)"; whose CPUs they are only where that is named.
std::string place_of_equal(const ScalingCell& cell, const std::string& whose) {
  const cells::EqualCpus& equal = cell.against_cpus->equal;
  const std::string middle = cpu_count_text(equal.cpus), range = range_within(equal);
  const char* unit = equal.cpus.cpus == 1 ? " CPU of " : " CPUs of ";
  return fmt::format("{}{}{} at batch {}{}", middle, whose.empty() ? "" : unit + whose,
                     extrapolated_text(equal), cell.cell.batch,
                     range.empty() ? "" : " (" + range + ")");
}

std::string equal_sentence(const Series& series, const std::vector<const ScalingCell*>& samples) {
  std::vector<std::string> places;
  bool repeated = true;
  cells::CellStatus status = cells::CellStatus::measured;
  for (const ScalingCell* cell : samples) {
    places.push_back(place_of_equal(*cell, places.empty() ? series.beside : std::string()));
    repeated = repeated && cell->against_cpus->equal.repeated;
    status = std::max(status, cell->against_cpus->equal.status);
  }
  const std::string mark = mark_of(status);
  const int count = samples.front()->cell.gpus;
  return fmt::format("{}{} {} as quick as {}; {}{}.", counted_devices(series, count),
                     series.name == device_text(series) ? "" : " (" + series.name + ")",
                     count == 1 ? "is" : "are", join(places, ", "),
                     repeated ? "ranges are those of the repeats" : "too few repeats for ranges",
                     mark.empty() ? "" : "; " + mark);
}

// The section.

using Value = std::optional<double>;

ScalingTable devices_of(const ScalingTable& table) {
  ScalingTable devices;
  std::ranges::copy_if(table.series, std::back_inserter(devices.series),
                       [](const Series& s) { return training::is_device(s.backend); });
  return devices;
}

/// "(58.2 to 70.1)"; empty where the repeats are too few.
std::string range_beside(const cells::EqualCpus& equal) {
  const std::string text = range_within(equal);
  return text.empty() ? "" : "(" + text + ")";
}

void add_beside(const ScalingTable& devices, std::vector<DocumentTable>& tables) {
  using C = const ScalingCell&;
  const auto within = [](C c) {
    return c.against_cpus && c.against_cpus->equal.cpus.place == End::within;
  };
  GridFigure speed_up{.caption = "Times as quick as one CPU at the same batch"};
  speed_up.value = [](C c) {
    return c.against_cpus ? Value(c.against_cpus->speed_up) : std::nullopt;
  };
  speed_up.status = [](C c) { return c.against_cpus->speed_up_status; };
  GridFigure equal{.caption = "CPUs that are as quick at the same batch"};
  equal.value = [within](C c) {
    return within(c) ? Value(c.against_cpus->equal.cpus.cpus) : std::nullopt;
  };
  equal.status = [](C c) { return c.against_cpus->equal.status; };
  equal.beside = [within](C c) { return within(c) ? range_beside(c.against_cpus->equal) : ""; };
  equal.words = [](C c) -> std::string {
    if (!c.against_cpus) return "";
    return cpu_count_text(c.against_cpus->equal.cpus) + extrapolated_text(c.against_cpus->equal);
  };
  for (const GridFigure& figure : {speed_up, equal}) {
    add_all(tables, grid_tables(devices, &Series::strong, figure));
  }
}

void add_shares(const ScalingTable& devices, std::vector<DocumentTable>& tables) {
  const auto add = [&](const char* caption, Value ScalingCell::*share) {
    add_all(tables,
            both_grids(devices, {.caption = caption,
                                 .value = [share](const ScalingCell& c) { return c.*share; },
                                 .text = percent_text}));
  };
  add("Share (%) of what mma.sync multiplies and adds, measured beside it",
      &ScalingCell::peak_share);
  add("Share (%) of what the chip's tensor cores do by its data sheet", &ScalingCell::chip_share);
  add("Share (%) of the GPUs' memory bandwidth (triad), measured beside it, by counted bytes",
      &ScalingCell::memory_share);
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

std::string equal_text(const Series& series, const ScalingCell& cell) {
  if (!cell.against_cpus) return "";
  const cells::EqualCpus& equal = cell.against_cpus->equal;
  const std::string between = range_within(equal);
  return fmt::format("{} CPUs of {}{}{}", cpu_count_text(equal.cpus), series.beside,
                     extrapolated_text(equal), between.empty() ? "" : " (" + between + ")");
}

std::vector<std::string> equal_sentences(const ScalingTable& table) {
  std::vector<std::string> texts;
  for (const Series& series : table.series) {
    const auto samples = samples_of(series);
    if (!samples.empty()) texts.push_back(equal_sentence(series, samples));
  }
  return texts;
}

Section gpu_section(const ScalingFacts& facts) {
  const ScalingTable devices = devices_of(facts.table);
  Section section{"gpus", "GPUs beside CPUs, and their rates"};
  add_beside(devices, section.tables);
  const bool compared = !section.tables.empty();
  add_shares(devices, section.tables);
  if (compared) {
    say_partners(devices, section.remarks);
    section.remarks.push_back(
        "Between two measured numbers of CPUs, times follow a power law. Beyond the last one the "
        "first figure by extrapolation is of CPUs that all are as good as the first, which no row "
        "reaches, and the second goes on as the last two numbers of CPUs. The range is that of the "
        "repeats: the GPUs' slowest beside the CPUs' "
        "quickest, and the reverse.");
  }
  if (devices.any([](const ScalingCell& c) { return c.peak_share.has_value(); })) {
    section.remarks.push_back(
        "mma.sync is the instruction that the kernels use, in the numbers of the cell. Chips since "
        "Hopper do more by another one (wgmma). Exact products count once, though they take three "
        "of TF32.");
  }
  if (devices.any([](const ScalingCell& c) { return c.memory_share.has_value(); })) {
    section.remarks.push_back(
        "Counted bytes are the least: maps that weights are learnt from move five times, with "
        "their gradients, and parameters six times a step. Images and other maps are not counted.");
  }
  return with_tables(std::move(section));
}

}  // namespace cputrain::report
