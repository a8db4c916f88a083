// Sections that are one figure of every cell, by batch and CPUs.

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

cells::CellStatus status_against_base(const ScalingCell& c) { return c.against; }

/// Beside a figure that more CPUs alone do not explain.
std::string suspect_mark(const ScalingCell& c) { return c.suspect ? "suspect" : ""; }

const GridFigure kSeconds{.caption = "Seconds per epoch (median)",
                          .value = [](const ScalingCell& c) { return c.cell.seconds_per_epoch; },
                          .is_time = true};
const GridFigure kSpeedUp{.caption = "Speed-up (times)",
                          .value = [](const ScalingCell& c) { return c.speed_up; },
                          .status = status_against_base,
                          .beside = suspect_mark};
const GridFigure kEfficiency{.caption = "Efficiency (%): speed-up by CPUs",
                             .value = [](const ScalingCell& c) { return c.efficiency; },
                             .status = status_against_base,
                             .text = percent_text,
                             .beside = suspect_mark};
const GridFigure kRate{.caption = "Images per second",
                       .value = [](const ScalingCell& c) { return c.images_per_second; }};

/// What a mark means; empty for a plain measurement.
std::string meaning_of(cells::CellStatus status) {
  if (status == cells::CellStatus::scaled) {
    return "scaled: some steps were measured and multiplied by the steps of an epoch.";
  }
  if (status == cells::CellStatus::simulated) {
    return std::string("simulated: a model of machine and network, no measurement. ") +
           cells::kSimulatedRange;
  }
  if (status == cells::CellStatus::predicted) {
    return std::string("predicted: ") + cells::kPredicted;
  }
  return "";
}

/// What the marks beside figures mean; above the first table where all figures share one, else
/// below it.
void explain_marks(Section& section, const ScalingTable& table) {
  const auto shared = shared_status(table);
  for (const auto status :
       {cells::CellStatus::scaled, cells::CellStatus::simulated, cells::CellStatus::predicted}) {
    if (shared == status) {
      section.paragraphs.push_back("All figures are " + meaning_of(status));
    } else if (table.any([&](const ScalingCell& c) { return c.cell.status == status; })) {
      section.remarks.push_back(meaning_of(status));
    }
  }
}

/// Rows whose speed-ups are against more than one CPU.
std::vector<std::string> base_remarks(const ScalingTable& table, Grid Series::*grid) {
  std::vector<std::string> remarks;
  for (const Series& series : table.series) {
    for (const auto& [row, cpus] : (series.*grid).bases) {
      if (cpus == 1) continue;
      remarks.push_back(
          fmt::format("{}batch {} has no time of one {}: its speed-ups are against {}, whose "
                      "efficiency counts as 100 %.",
                      table.series.size() > 1 ? series.name + ", " : "", row_text(row),
                      cpus_text(series.backend, 1), cpus));
    }
  }
  return remarks;
}

/// What "suspect" beside a figure means, and which cells have it.
std::vector<std::string> suspect_remarks(const ScalingTable& table, Grid Series::*grid) {
  constexpr std::size_t kMostNamed = 6;
  std::vector<std::string> cells;
  for (const Series& series : table.series) {
    for (const auto& [where, c] : (series.*grid).cells) {
      if (!c.suspect) continue;
      const int base = (series.*grid).bases.at(where.first);
      cells.push_back(fmt::format("{}: {} times as quick as {} {}",
                                  place_text(table, series, c.cell), figure_text(*c.speed_up), base,
                                  cpus_text(series.backend, base)));
    }
  }
  if (cells.empty()) return {};
  const std::size_t more = cells.size() - std::min(cells.size(), kMostNamed);
  cells.resize(cells.size() - more);
  return {fmt::format(
      "suspect: more than {} times what the CPUs explain ({}{}). The time that it is compared with "
      "may have been disturbed or computed in micro-batches of another size, or the machine gave "
      "this cell more clock or cache: measure both again before you rely on it.",
      cells::kMostSpeedUp, join(cells, "; "), more > 0 ? fmt::format("; {} more", more) : "")};
}

/// What the columns of GPUs are of.
std::vector<std::string> device_remarks(const ScalingTable& table) {
  std::vector<std::string> remarks;
  for (const Series& series : table.series) {
    const std::string& device = series.identity.device;
    if (!device.empty() && !series.strong.empty() && !series.name.ends_with(device)) {
      remarks.push_back(fmt::format("{}: {}.", series.name, device));
    }
  }
  return remarks;
}

/// "2 of 3": of the repeats; empty where all of them reached it, or none was to.
std::string reached_text(const ScalingCell& c) {
  const auto repeats = static_cast<int>(c.cell.repeats.size());
  if (!c.cell.reached_target || *c.cell.reached_target >= repeats) return "";
  return fmt::format("{} of {}", *c.cell.reached_target, repeats);
}

/// "trained for 5 epochs at most, for an accuracy of 0.9"; empty where the table does not say.
std::string aim_text(const Series& series) {
  const auto& options = series.about.options;
  const auto epochs = options.find("epochs"), target = options.find("target-accuracy");
  std::vector<std::string> parts;
  if (epochs != options.end()) parts.push_back("trained for " + epochs->second + " epochs at most");
  if (target != options.end()) parts.push_back("for an accuracy of " + target->second);
  return join(parts, ", ");
}

}  // namespace

Section with_tables(Section section) {
  std::erase_if(section.tables, [](const DocumentTable& table) { return table.rows.empty(); });
  return section.tables.empty() ? Section{} : section;
}

Section seconds_section(const ScalingFacts& facts) {
  Section section{.id = "seconds",
                  .title = "Seconds per epoch",
                  .plots = {"seconds"},
                  .tables = grid_tables(facts.table, &Series::strong, kSeconds),
                  .remarks = device_remarks(facts.table),
                  .tables_first = true};
  add_all(section.remarks, facts.table.remarks);
  explain_marks(section, facts.table);
  return with_tables(std::move(section));
}

Section speed_up_section(const ScalingFacts& facts) {
  Section section{.id = "speed-up",
                  .title = "Speed-up",
                  .paragraphs = {"How many times quicker than one CPU (or GPU) at the same batch."},
                  .plots = {"speed-up"},
                  .tables = grid_tables(facts.table, &Series::strong, kSpeedUp),
                  .remarks = base_remarks(facts.table, &Series::strong)};
  if (std::ranges::any_of(facts.table.series, [](const Series& s) { return !s.beside.empty(); })) {
    section.paragraphs.push_back(
        "GPUs are set against CPUs below \"GPUs beside CPUs, and their rates\".");
  }
  add_all(section.remarks, suspect_remarks(facts.table, &Series::strong));
  return with_tables(std::move(section));
}

Section efficiency_section(const ScalingFacts& facts) {
  Section section{.id = "efficiency",
                  .title = "Efficiency",
                  .plots = {"efficiency"},
                  .tables = grid_tables(facts.table, &Series::strong, kEfficiency),
                  .remarks = suspect_remarks(facts.table, &Series::strong)};
  const bool above_linear = facts.table.any([](const ScalingCell& c) {
    return c.cell.status == cells::CellStatus::simulated &&
           c.efficiency.value_or(0) >= cells::kAboveLinear;
  });
  if (above_linear) {
    section.remarks.push_back(
        "Simulated cells above 100 % have their reason below \"What limits each cell\".");
  }
  return with_tables(std::move(section));
}

Section throughput_section(const ScalingFacts& facts) {
  return with_tables({.id = "throughput",
                      .title = "Images per second",
                      .tables = grid_tables(facts.table, &Series::strong, kRate)});
}

Section arithmetic_section(const ScalingFacts& facts) {
  Section section{
      .id = "arithmetic",
      .title = "GFLOP/s and share of the peak",
      .tables =
          both_grids(facts.table, {.caption = "GFLOP/s, counting direct convolution",
                                   .value = [](const ScalingCell& c) { return c.cell.gflops; }}),
      .remarks = {"Multiplications by zero are counted though they may be skipped, exactly, and "
                  "Winograd's algorithm has fewer: a share may be more than 100 %."}};
  ScalingTable table = facts.table;  // GPUs have shares of their own
  std::erase_if(table.series, [](const Series& s) { return training::is_device(s.backend); });
  add_all(section.tables,
          both_grids(table, {.caption = "Share (%) of the multiply-adds that these CPUs can do, "
                                        "measured beside it",
                             .value = [](const ScalingCell& c) { return c.peak_share; },
                             .text = percent_text}));
  return with_tables(std::move(section));
}

Section weak_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  GridFigure efficiency = kEfficiency;
  efficiency.caption = "Weak efficiency (%): images per second and CPU against the fewest CPUs";
  Section section{
      .id = "weak",
      .title = "Weak scaling",
      .paragraphs = {"Every rank keeps its batch, so the global batch grows with the ranks, and "
                     "steps per epoch become fewer."},
      .plots = {"weak"},
      .tables = grid_tables(table, &Series::weak, kSeconds),
      .remarks = base_remarks(table, &Series::weak)};
  for (const GridFigure& figure : {kRate, efficiency}) {
    add_all(section.tables, grid_tables(table, &Series::weak, figure));
  }
  const auto has_threads = [](const Series& s) {
    return std::ranges::any_of(s.weak.rows, [](const GridRow& row) { return row.threads > 1; });
  };
  if (std::ranges::any_of(table.series, has_threads)) {
    section.paragraphs.push_back(
        "Ranks of several threads have rows of their own: on as many CPUs they are fewer, and the "
        "global batch is smaller.");
  }
  add_all(section.remarks, suspect_remarks(table, &Series::weak));
  // Else they stand below that grid.
  if (!table.has_strong()) explain_marks(section, table);
  return with_tables(std::move(section));
}

Section memory_section(const ScalingFacts& facts) {
  Section section{
      .id = "memory",
      .title = "Peak memory",
      .remarks = {"The most of the repeats. Of a node, memory that ranks share counts once, and "
                  "pages of files do not; of a rank, all that was resident counts."}};
  const auto add = [&](const char* caption, Value cells::Cell::*bytes) {
    const auto gigabytes = [bytes](const ScalingCell& c) {
      const Value value = c.cell.*bytes;
      return value ? Value(*value / 1e9) : std::nullopt;
    };
    add_all(section.tables, both_grids(facts.table, {.caption = caption, .value = gigabytes}));
  };
  add("GB of the node with most, all its ranks together", &cells::Cell::peak_node_bytes);
  add("GB of the rank with most", &cells::Cell::peak_rank_bytes);
  add("GB of a device, by the rank with most", &cells::Cell::peak_device_bytes);
  return with_tables(std::move(section));
}

Section cost_section(const ScalingFacts& facts) {
  Section section{.id = "cost",
                  .title = "Cost of an epoch",
                  .tables = both_grids(facts.table,
                                       {.caption = "Cost of an epoch, in the currency of the price",
                                        .value = [](const ScalingCell& c) { return c.cost; }})};
  const auto say = [&](const std::map<std::string, double>& list, const char* of) {
    for (const auto& [backend, price] : list) {
      section.remarks.push_back(fmt::format("{} an hour of {}{}{}.", figure_text(price), of,
                                            backend.empty() ? "" : " with backend ", backend));
    }
  };
  say(facts.prices.per_hour, "the whole machine, however many of its CPUs work");
  say(facts.prices.per_cpu_hour, "each CPU that works");
  say(facts.prices.per_gpu_hour, "each GPU that works, with the CPUs beside it");
  return with_tables(std::move(section));
}

Section target_section(const ScalingFacts& facts) {
  Section section{
      .id = "target",
      .title = "Time to the target accuracy",
      .tables =
          both_grids(facts.table,
                     {.caption = "Seconds of training until validation reached the target accuracy",
                      .value = [](const ScalingCell& c) { return c.cell.seconds_to_target; },
                      .beside = reached_text,
                      .missing = "not reached"}),
      .remarks = {
          "Medians of the repeats, of which those that did not reach it count as longer than the "
          "others; 2 of 3: so many of them reached it. not reached: by half of the repeats, or "
          "fewer."}};
  for (const Series& series : facts.table.series) {
    const std::string aim = aim_text(series);
    if (!aim.empty()) section.remarks.push_back(series.name + ": " + aim + ".");
  }
  return with_tables(std::move(section));
}

}  // namespace cputrain::report
