// Sections that are one figure of every cell, by batch and CPUs.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/report_sections.h"
#include "training/request/backend_words.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

cells::CellStatus own_status(const ScalingCell& c) { return c.cell.status; }
cells::CellStatus status_against_base(const ScalingCell& c) { return c.against; }

GridFigure own(std::string caption, std::function<Value(const ScalingCell&)> value) {
  return {std::move(caption), std::move(value), own_status};
}

std::string percent(double part) { return fmt::format("{:.1f}", 100 * part); }

const GridFigure kSeconds{"Seconds per epoch (median)",
                          [](const ScalingCell& c) { return c.cell.seconds_per_epoch; }, own_status,
                          figure_text, true};
/// Beside a figure that more CPUs alone do not explain.
std::string suspect_mark(const ScalingCell& c) { return c.suspect ? "suspect" : ""; }

const GridFigure kSpeedUp{"Speed-up (times)",
                          [](const ScalingCell& c) { return c.speed_up; },
                          status_against_base,
                          figure_text,
                          false,
                          suspect_mark};
const GridFigure kEfficiency{"Efficiency (%): speed-up by CPUs",
                             [](const ScalingCell& c) { return c.efficiency; },
                             status_against_base,
                             percent,
                             false,
                             suspect_mark};

bool any_has(const ScalingTable& table, cells::CellStatus status) {
  bool found = false;
  table.for_each([&](const Series&, const ScalingCell& c) { found |= c.cell.status == status; });
  return found;
}

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
    } else if (any_has(table, status)) {
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

/// Where to find why a simulated figure is above 100 %.
std::vector<std::string> above_hundred_remarks(const ScalingTable& table) {
  bool any = false;
  table.for_each([&](const Series&, const ScalingCell& c) {
    any |= c.cell.status == cells::CellStatus::simulated &&
           c.efficiency.value_or(0) >= cells::kAboveLinear;
  });
  if (!any) return {};
  return {"Simulated cells above 100 % have their reason below \"What limits each cell\"."};
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

/// Whether GPUs are compared with CPUs below.
bool has_gpus_beside(const ScalingTable& table) {
  return std::ranges::any_of(table.series, [](const Series& s) { return !s.beside.empty(); });
}

void add_all(std::vector<std::string>& to, std::vector<std::string> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
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

MaybeSection section_of(std::string id, std::string title, std::vector<DocumentTable> tables) {
  std::erase_if(tables, [](const DocumentTable& table) { return table.rows.empty(); });
  if (tables.empty()) return std::nullopt;
  return Section{.id = std::move(id), .title = std::move(title), .tables = std::move(tables)};
}

MaybeSection seconds_section(const ScalingTable& table) {
  std::vector<DocumentTable> tables = grid_tables(table, &Series::strong, kSeconds);
  add_increase_rows(table, tables);
  MaybeSection result = section_of("seconds", "Seconds per epoch", std::move(tables));
  if (!result) return result;
  result->plots = {"seconds"};
  result->tables_first = true;
  result->remarks = device_remarks(table);
  explain_marks(*result, table);
  return result;
}

MaybeSection speed_up_section(const ScalingTable& table) {
  MaybeSection result =
      section_of("speed-up", "Speed-up", grid_tables(table, &Series::strong, kSpeedUp));
  if (!result) return result;
  result->plots = {"speed-up"};
  result->paragraphs.push_back("How many times quicker than one CPU (or GPU) at the same batch.");
  if (has_gpus_beside(table)) {
    result->paragraphs.push_back(
        "GPUs are set against CPUs below \"GPUs beside CPUs, and their rates\".");
  }
  result->remarks = base_remarks(table, &Series::strong);
  add_all(result->remarks, suspect_remarks(table, &Series::strong));
  return result;
}

MaybeSection efficiency_section(const ScalingTable& table) {
  MaybeSection result =
      section_of("efficiency", "Efficiency", grid_tables(table, &Series::strong, kEfficiency));
  if (!result) return result;
  result->plots = {"efficiency"};
  result->remarks = suspect_remarks(table, &Series::strong);
  add_all(result->remarks, above_hundred_remarks(table));
  return result;
}

MaybeSection throughput_section(const ScalingTable& table) {
  return section_of(
      "throughput", "Images per second",
      grid_tables(table, &Series::strong, own("Images per second", [](const ScalingCell& c) {
                    return c.images_per_second;
                  })));
}

MaybeSection arithmetic_section(const ScalingTable& all) {
  auto tables = both_grids(all, own("GFLOP/s, counting direct convolution",
                                    [](const ScalingCell& c) { return c.cell.gflops; }));
  ScalingTable table = all;  // GPUs have shares of their own
  std::erase_if(table.series, [](const Series& s) { return training::is_device(s.backend); });
  GridFigure share =
      own("Share (%) of the multiply-adds that these CPUs can do, measured beside it",
          [](const ScalingCell& c) { return c.peak_share; });
  share.text = percent;
  for (auto& t : both_grids(table, share)) tables.push_back(std::move(t));
  MaybeSection result =
      section_of("arithmetic", "GFLOP/s and share of the peak", std::move(tables));
  if (!result) return result;
  result->remarks.push_back(
      "Multiplications by zero are counted though they may be skipped, exactly, and Winograd's "
      "algorithm has fewer: a share may be more than 100 %.");
  return result;
}

MaybeSection weak_section(const ScalingTable& table) {
  auto tables = grid_tables(table, &Series::weak, kSeconds);
  if (tables.empty()) return std::nullopt;
  const auto append = [&](GridFigure figure, const char* caption) {
    figure.caption = caption;
    for (auto& t : grid_tables(table, &Series::weak, figure)) tables.push_back(std::move(t));
  };
  append(own("", [](const ScalingCell& c) { return c.images_per_second; }), "Images per second");
  append(kEfficiency, "Weak efficiency (%): images per second and CPU against the fewest CPUs");
  MaybeSection result = section_of("weak", "Weak scaling", std::move(tables));
  result->plots = {"weak"};
  result->paragraphs.push_back(
      "Every rank keeps its batch, so the global batch grows with the ranks, and steps per epoch "
      "become fewer.");
  const auto has_threads = [](const Series& s) {
    return std::ranges::any_of(s.weak.rows, [](const GridRow& row) { return row.threads > 1; });
  };
  if (std::ranges::any_of(table.series, has_threads)) {
    result->paragraphs.push_back(
        "Ranks of several threads have rows of their own: on as many CPUs they are fewer, and the "
        "global batch is smaller.");
  }
  result->remarks = base_remarks(table, &Series::weak);
  add_all(result->remarks, suspect_remarks(table, &Series::weak));
  // Else they stand below that grid.
  if (!table.has_strong()) explain_marks(*result, table);
  return result;
}

MaybeSection memory_section(const ScalingTable& table) {
  const auto gigabytes = [](Value cells::Cell::*bytes) {
    return [bytes](const ScalingCell& c) {
      const Value value = c.cell.*bytes;
      return value ? Value(*value / 1e9) : std::nullopt;
    };
  };
  std::vector<DocumentTable> tables;
  const auto add = [&](const char* caption, Value cells::Cell::*bytes) {
    for (auto& t : both_grids(table, own(caption, gigabytes(bytes))))
      tables.push_back(std::move(t));
  };
  add("GB of the node with most, all its ranks together", &cells::Cell::peak_node_bytes);
  add("GB of the rank with most", &cells::Cell::peak_rank_bytes);
  add("GB of a device, by the rank with most", &cells::Cell::peak_device_bytes);
  MaybeSection result = section_of("memory", "Peak memory", std::move(tables));
  if (!result) return result;
  result->remarks.push_back(
      "The most of the repeats. Of a node, memory that ranks share counts once, and pages of files "
      "do not; of a rank, all that was resident counts.");
  return result;
}

MaybeSection cost_section(const ScalingTable& table, const cells::Prices& prices) {
  if (prices.empty()) return std::nullopt;
  MaybeSection result =
      section_of("cost", "Cost of an epoch",
                 both_grids(table, own("Cost of an epoch, in the currency of the price",
                                       [](const ScalingCell& c) { return c.cost; })));
  if (!result) return result;
  const auto say = [&](const std::map<std::string, double>& list, const char* of) {
    for (const auto& [backend, price] : list) {
      result->remarks.push_back(fmt::format("{} an hour of {}{}{}.", figure_text(price), of,
                                            backend.empty() ? "" : " with backend ", backend));
    }
  };
  say(prices.per_hour, "the whole machine, however many of its CPUs work");
  say(prices.per_cpu_hour, "each CPU that works");
  say(prices.per_gpu_hour, "each GPU that works, with the CPUs beside it");
  return result;
}

MaybeSection target_section(const ScalingTable& table) {
  GridFigure figure = own("Seconds of training until validation reached the target accuracy",
                          [](const ScalingCell& c) { return c.cell.seconds_to_target; });
  figure.beside = reached_text;
  figure.missing = "not reached";
  MaybeSection result =
      section_of("target", "Time to the target accuracy", both_grids(table, figure));
  if (!result) return result;
  result->remarks.push_back(
      "Medians of the repeats, of which those that did not reach it count as longer than the "
      "others; 2 of 3: so many of them reached it. not reached: by half of the repeats, or fewer.");
  for (const Series& series : table.series) {
    const std::string aim = aim_text(series);
    if (!aim.empty()) result->remarks.push_back(series.name + ": " + aim + ".");
  }
  return result;
}

}  // namespace cputrain::report
