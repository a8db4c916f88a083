#include "scaling/report/scaling_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/trainings/run_list.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

std::string processors_of(const ScalingTable& table) {
  const auto devices = std::ranges::count_if(table.series, training::is_device, &Series::backend);
  if (devices == 0) return "CPUs";
  return devices == std::ssize(table.series) ? "GPUs" : "CPUs, GPUs";
}

std::string document_title(const ScalingTable& table) {
  if (table.series.empty()) return "Seconds per epoch";
  const cells::CellTable& about = table.series.front().about;
  std::string title = fmt::format("Seconds per epoch by {} and batch size", processors_of(table));
  if (!about.model.empty()) title += ": " + about.model;
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

/// Empty where nothing is known.
std::string machine_of(const cells::CellMachine& machine) {
  if (!machine.platform.empty()) return "simulated platform " + machine.platform;
  if (machine.name.empty() && machine.cpu.empty()) return "";
  return cells::machine_text(machine, machine.cpu_id);
}

/// "AMD EPYC, 2 cores; 2026-11-25; commit abc1234, Release": what the figures of a source are of.
std::string origin_of(const cells::CellTable& t) {
  const std::string machine = machine_of(t.machine);
  std::vector<std::string> parts{machine.empty() ? "machine not said" : machine};
  const auto add = [&](const std::string& text) {
    if (!text.empty()) parts.push_back(text);
  };
  add(t.date);
  add(t.commit);
  if (t.date.empty() && t.commit.empty()) add("date and commit not recorded");
  if (!t.costs.empty()) add("costs: " + t.costs);
  return join(parts, "; ");
}

/// How many figures are not to be taken for true as they are.
std::string suspects_text(const ScalingTable& table) {
  int count = 0;
  table.for_each([&](const Series&, const ScalingCell& c) { count += c.suspect ? 1 : 0; });
  if (count == 0) return "";
  return fmt::format("Suspect: {} speed-up{} more than {} times what the CPUs explain.", count,
                     count == 1 ? " is" : "s are", cells::kMostSpeedUp);
}

const Grid& grid_of(const Series& series) {
  return series.strong.empty() ? series.weak : series.strong;
}

/// A cell with its row and series.
struct FastestCell {
  const Series* series;
  GridRow row;
  const ScalingCell* cell;

  /// The one that the row's speed-ups are against.
  const cells::Cell& base() const {
    const Grid& grid = grid_of(*series);
    return grid.at(row, grid.bases.at(row))->cell;
  }
};

/// The cell with the least time; nothing where none has one.
std::optional<FastestCell> fastest_of(const Series& series) {
  std::optional<FastestCell> best;
  for (const auto& [where, cell] : grid_of(series).cells) {
    if (!cell.cell.seconds_per_epoch) continue;
    if (!best || *cell.cell.seconds_per_epoch < *best->cell->cell.seconds_per_epoch) {
      best = FastestCell{&series, where.first, &cell};
    }
  }
  return best;
}

/// Whether an interval leaves 1 out on the side of a gain.
bool is_shown(const TimeRatio& gain) { return gain.interval && gain.interval->low > 1; }

// The sentences that come first.

/// " (simulated)"; empty for measured.
std::string mark_in_brackets(const cells::Cell& cell) {
  const std::string mark = mark_of(cell.status);
  return mark.empty() ? "" : " (" + mark + ")";
}

std::string count_text(const std::string& backend, int count) {
  return fmt::format("{} {}", count, cpus_text(backend, count));
}

/// ", 34.8 times as fast as 1 CPU at this batch (95 % interval 34.6 to 35.1)". The factor is by
/// geometric means, which the interval is around.
std::string gain_text(const FastestCell& fastest) {
  const cells::Cell& cell = fastest.cell->cell;
  const cells::Cell& base = fastest.base();
  if (base.cpus == cell.cpus) return "";
  const std::string base_text = count_text(fastest.series->backend, base.cpus) + " at this batch";
  const TimeRatio gain = gain_of(base, cell);
  if (!gain.interval) {
    return fmt::format(", {} times as fast as {} (too few repeats for an interval)",
                       figure_text(gain.of_means), base_text);
  }
  const bool simulated = cells::is_forecast(cell.status);
  const std::string interval =
      fmt::format("(95 % interval{} {} to {})", simulated ? " of the model's repeats" : "",
                  figure_text(gain.interval->low), figure_text(gain.interval->high));
  if (!is_shown(gain)) {
    return fmt::format(", no difference shown from {} {}", base_text, interval);
  }
  return fmt::format(", {} times as fast as {} {}", figure_text(gain.of_means), base_text,
                     interval);
}

/// "Fastest: 7.31 s per epoch (simulated) on 96 CPUs, batch 1024, 34.8 times as fast as 1 CPU ...";
/// or what else the repeats allow to say of the cell with the least time.
std::string fastest_sentence(const FastestCell& fastest) {
  const cells::Cell& cell = fastest.cell->cell;
  int others = 0, alike = 0, unknown = 0;  // unknown: of too few repeats to tell it from them
  for (const auto& [where, other] : grid_of(*fastest.series).cells) {
    if (&other.cell == &cell || !other.cell.seconds_per_epoch) continue;
    const TimeRatio gain = gain_of(other.cell, cell);
    ++others;
    alike += gain.interval && !is_shown(gain) ? 1 : 0;
    unknown += gain.interval ? 0 : 1;
  }
  return fmt::format(
      "{}: {} s per epoch{} on {}{}{}{}.",
      others == 0           ? "The only time"
      : alike + unknown > 0 ? "Least time"
                            : "Fastest",
      figure_text(*cell.seconds_per_epoch), mark_in_brackets(cell), place_text(cell),
      alike > 0 ? fmt::format(" (no difference shown from {})", counted(alike, "other cell")) : "",
      gain_text(fastest), fastest.cell->suspect ? ", which is suspect" : "");
}

std::string knee_text(const FastestCell& fastest) {
  const Series& series = *fastest.series;
  const Grid& grid = grid_of(series);
  const Knee knee = knee_of(grid, fastest.row);
  const auto counted = [&](int count) { return count_text(series.backend, count); };
  const std::string units = cpus_text(series.backend, 2);
  const int most = grid.cpus.empty() ? 0 : grid.cpus.back();
  if (!knee.known) {
    if (grid.cpus.size() < 2) return fmt::format("One number of {} shows no knee", units);
    return fmt::format("Repeats are too few to say where more {} stop paying", units);
  }
  if (knee.cpus == 0) return fmt::format("No step to more {} is shown to pay at this batch", units);
  if (knee.next == 0) {
    return fmt::format("More {} paid up to {}, the most that {}", units, counted(knee.cpus),
                       knee.cpus == most ? "were tried" : "have a time");
  }
  if (knee.open) {
    return fmt::format(
        "More {} paid up to {}, and whether the step to {} pays is not shown by the repeats", units,
        counted(knee.cpus), counted(knee.next));
  }
  return fmt::format("The knee is at {} (the step to {} brought {} of {} times)",
                     counted(knee.cpus), knee.next, figure_text(knee.gain),
                     figure_text(static_cast<double>(knee.next) / knee.cpus));
}

std::string limit_text(const Series& series, const cells::Cell& cell) {
  const std::string what = cell.limits.what.empty()
                               ? cells::explain(cell, series.about.parameters).what
                               : cell.limits.what;
  return fmt::format("on {} the limit is {}", count_text(series.backend, cell.cpus),
                     what.empty() ? "not known" : what);
}

/// What it lacked most, and what to try; empty where it lacked nothing.
std::string starved_text(const cells::Cell& cell) {
  const auto lost = lost_time_of(cell);
  return lost.empty() ? "" : " " + lost.front().sentence;
}

// The card.

/// Simulated times stand aside where there is any other.
std::optional<FastestCell> fastest_of(const ScalingTable& table) {
  std::optional<FastestCell> best;
  const auto key = [](const FastestCell& fastest) {
    const cells::Cell& cell = fastest.cell->cell;
    return std::pair(cells::is_forecast(cell.status), *cell.seconds_per_epoch);
  };
  for (const Series& series : table.series) {
    const auto here = fastest_of(series);
    if (here && (!best || key(*here) < key(*best))) best = here;
  }
  return best;
}

std::string speed_up_text(const FastestCell& fastest) {
  const ScalingCell& place = *fastest.cell;
  const cells::Cell& base = fastest.base();
  if (!place.speed_up || base.cpus == place.cell.cpus) return "";
  // By geometric means, as the sentences below the card have it.
  return fmt::format("{} times, against {}", figure_text(gain_of(base, place.cell).of_means),
                     count_text(place.cell.backend, base.cpus));
}

/// The table that the cell is from, whose command, date and commit are its own.
const cells::CellTable& source_of(const FastestCell& fastest,
                                  const std::vector<CellSource>& sources) {
  for (const CellSource& source : sources) {
    if (source.folder == fastest.cell->folder) return source.table;
  }
  return fastest.series->about;
}

/// The fastest cell of all, measured where there is any that is; nothing where no cell has a time.
std::optional<Card> scaling_card(const ScalingTable& table,
                                 const std::vector<CellSource>& sources) {
  const auto fastest = fastest_of(table);
  if (!fastest) return std::nullopt;
  const ScalingCell& place = *fastest->cell;
  const cells::Cell& cell = place.cell;
  const cells::CellTable& about = source_of(*fastest, sources);
  Card card;
  card.subject = about.model;
  if (about.image_size > 0) card.subject += fmt::format(" at {0}x{0}", about.image_size);
  if (about.images_per_epoch > 0)
    card.subject += fmt::format(", {} images per epoch", with_commas(about.images_per_epoch));
  if (!about.data.empty()) card.subject += ", data " + without_folders(about.data);
  card.figure = figure_text(*cell.seconds_per_epoch) + " s";
  card.what = fmt::format("per epoch{} on {}", mark_in_brackets(cell), place_text(cell));
  card.add("machine", machine_of(about.machine));
  if (!cell.device.empty()) card.add("GPUs", fmt::format("{} x {}", cell.gpus, cell.device));
  if (place.images_per_second) card.add("images/s", figure_text(*place.images_per_second));
  card.add("speed-up", speed_up_text(*fastest));
  card.add("as quick as", equal_text(*fastest->series, place));
  if (place.cost) card.add("cost", figure_text(*place.cost) + " per epoch at the price given");
  card.add("date", about.date);
  card.add("program", cell.origin.commit);
  if (cell.origin.kernels_version) {
    card.add("kernels", fmt::format("version {}", *cell.origin.kernels_version));
  }
  card.command = about.command;
  return card;
}

/// In the order of the document.
constexpr SectionMaker* kSections[] = {seconds_section,
                                       speed_up_section,
                                       efficiency_section,
                                       throughput_section,
                                       gpu_section,
                                       arithmetic_section,
                                       budget_section,
                                       limits_section,
                                       splits_section,
                                       accuracy_section,
                                       accuracy_by_cpus_section,
                                       target_section,
                                       weak_section,
                                       memory_section,
                                       cost_section,
                                       backends_section,
                                       reference_section,
                                       fit_section,
                                       spread_section,
                                       conditions_section};

}  // namespace

Knee knee_of(const Grid& grid, const GridRow& row) {
  Knee knee;
  const auto timed = grid.timed(row);
  for (std::size_t i = 1; i < timed.size(); ++i) {
    const cells::Cell &from = *timed[i - 1], &to = *timed[i];
    const TimeRatio by_repeats = gain_of(from, to);
    if (!by_repeats.interval) return {};
    const double promised = static_cast<double>(to.cpus) / from.cpus;
    const double enough = 1 + 0.5 * (promised - 1);
    knee.known = true;
    if (is_shown(by_repeats) && by_repeats.of_means >= enough) {
      knee = {to.cpus, 0, 1, false, true};
    } else if (knee.cpus == from.cpus) {
      knee.next = to.cpus;
      knee.gain = by_repeats.of_means;
      knee.open = by_repeats.interval->high >= enough;
    }
  }
  return knee;
}

std::vector<std::string> headlines(const ScalingTable& table) {
  std::vector<std::string> texts;
  for (const Series& series : table.series) {
    const auto fastest = fastest_of(series);
    const std::string whose = table.series.size() > 1 ? series.name + ". " : "";
    if (!fastest) {
      texts.push_back(whose + "No cell has a time.");
      continue;
    }
    texts.push_back(fmt::format("{}{} {}; {}.{}", whose, fastest_sentence(*fastest),
                                knee_text(*fastest), limit_text(series, fastest->cell->cell),
                                starved_text(fastest->cell->cell)));
  }
  return texts;
}

Document scaling_document(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  const std::vector<CellSource>& sources = facts.sources;
  Document document{document_title(table), headlines(table)};
  add_all(document.headline, equal_sentences(table));
  document.card = scaling_card(table, sources);
  document.plot_first = true;
  const auto say = [&](const CellSource& source, const std::string& text) {
    document.summary.push_back((sources.size() > 1 ? source.name + ": " : "") + text + ".");
  };
  for (const CellSource& source : sources) say(source, origin_of(source.table));
  for (const CellSource& source : sources) {
    for (const std::string& remark : cells::remarks(source.table)) say(source, remark);
  }
  if (const std::string suspects = suspects_text(table); !suspects.empty()) {
    document.summary.push_back(suspects);
  }
  for (SectionMaker* section : kSections) document.add(section(facts));
  if (!table.has_strong()) {  // what comes first is what people see first
    std::stable_partition(document.sections.begin(), document.sections.end(),
                          [](const Section& s) { return s.id == "weak"; });
  }
  return document;
}

}  // namespace cputrain::report
