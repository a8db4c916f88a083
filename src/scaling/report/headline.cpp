#include "scaling/report/headline.h"

#include <fmt/format.h>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/grid_tables.h"

namespace cputrain::report {
namespace {

std::vector<double> repeats_of(const cells::Cell& c) {
  return c.repeats.empty() ? std::vector<double>{*c.seconds_per_epoch} : c.repeats;
}

/// Other cells with a time: those that the repeats do not tell from the fastest, and those of
/// which too few repeats are there to say.
struct Rivals {
  int all = 0, alike = 0, unknown = 0;
};

Rivals rivals_of(const Grid& grid, const cells::Cell& fastest) {
  Rivals rivals;
  for (const auto& [where, other] : grid.cells) {
    if (&other.cell == &fastest || !other.cell.seconds_per_epoch) continue;
    const TimeRatio gain = gain_of(other.cell, fastest);
    ++rivals.all;
    rivals.alike += gain.interval && !is_shown(gain) ? 1 : 0;
    rivals.unknown += gain.interval ? 0 : 1;
  }
  return rivals;
}

/// "Fastest", or what the repeats allow to say of the cell with the least time.
std::string rank_text(const Rivals& rivals) {
  if (rivals.all == 0) return "The only time";
  return rivals.alike + rivals.unknown > 0 ? "Least time" : "Fastest";
}

/// " (no difference shown from 3 other cells)"; empty where there are none.
std::string rivals_text(const Rivals& rivals) {
  if (rivals.alike == 0) return "";
  return fmt::format(" (no difference shown from {})", counted(rivals.alike, "other cell"));
}

std::string count_text(const std::string& backend, int count) {
  return fmt::format("{} {}", count, cpus_text(backend, count));
}

/// ", 34.8 times as fast as 1 CPU at this batch (95 % interval 34.6 to 35.1)". The factor is by
/// geometric means, which the interval is around.
std::string speed_up_text(const Series& series, const Grid& grid, const FastestCell& fastest) {
  const cells::Cell& cell = fastest.cell->cell;
  const int base_cpus = grid.bases.at(fastest.row);
  if (base_cpus == cell.cpus) return "";
  const cells::Cell& base = grid.at(fastest.row, base_cpus)->cell;
  const std::string base_text = count_text(series.backend, base_cpus) + " at this batch";
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

/// "Fastest: 7.31 s per epoch (simulated) on 96 CPUs, batch 1024, 34.8 times as fast as 1 CPU ...".
std::string fastest_sentence(const Series& series, const Grid& grid, const FastestCell& fastest) {
  const cells::Cell& cell = fastest.cell->cell;
  const std::string mark = mark_of(cell.status);
  const Rivals rivals = rivals_of(grid, cell);
  return fmt::format("{}: {} s per epoch{} on {}{}{}{}.", rank_text(rivals),
                     figure_text(*cell.seconds_per_epoch), mark.empty() ? "" : " (" + mark + ")",
                     place_text(cell), rivals_text(rivals), speed_up_text(series, grid, fastest),
                     fastest.cell->suspect ? ", which is suspect" : "");
}

std::string knee_text(const Series& series, const Grid& grid, const GridRow& row) {
  const Knee knee = knee_of(grid, row);
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

}  // namespace

std::optional<FastestCell> fastest_of(const Grid& grid) {
  std::optional<FastestCell> best;
  for (const auto& [where, cell] : grid.cells) {
    if (!cell.cell.seconds_per_epoch) continue;
    if (!best || *cell.cell.seconds_per_epoch < *best->cell->cell.seconds_per_epoch) {
      best = FastestCell{where.first, &cell};
    }
  }
  return best;
}

TimeRatio gain_of(const cells::Cell& from, const cells::Cell& to) {
  return compare_times(repeats_of(to), repeats_of(from));
}

bool is_shown(const TimeRatio& gain) { return gain.interval && gain.interval->low > 1; }

Knee knee_of(const Grid& grid, const GridRow& row) {
  Knee knee;
  const ScalingCell* from = nullptr;
  for (const int cpus : grid.cpus) {
    const ScalingCell* to = grid.at(row, cpus);
    if (!to || !to->cell.seconds_per_epoch) continue;
    if (from) {
      const TimeRatio by_repeats = gain_of(from->cell, to->cell);
      if (!by_repeats.interval) return {};
      const double promised = static_cast<double>(cpus) / from->cell.cpus;
      const double enough = 1 + 0.5 * (promised - 1);
      knee.known = true;
      if (is_shown(by_repeats) && by_repeats.of_means >= enough) {
        knee = {cpus, 0, 1, false, true};
      } else if (knee.cpus == from->cell.cpus) {
        knee.next = cpus;
        knee.gain = by_repeats.of_means;
        knee.open = by_repeats.interval->high >= enough;
      }
    }
    from = to;
  }
  return knee;
}

std::vector<std::string> headlines(const ScalingTable& table) {
  std::vector<std::string> texts;
  for (const Series& series : table.series) {
    const Grid& grid = series.strong.empty() ? series.weak : series.strong;
    const auto fastest = fastest_of(grid);
    const std::string whose = table.series.size() > 1 ? series.name + ". " : "";
    if (!fastest) {
      texts.push_back(whose + "No cell has a time.");
      continue;
    }
    texts.push_back(fmt::format("{}{} {}; {}.{}", whose, fastest_sentence(series, grid, *fastest),
                                knee_text(series, grid, fastest->row),
                                limit_text(series, fastest->cell->cell),
                                starved_text(fastest->cell->cell)));
  }
  return texts;
}

}  // namespace cputrain::report
