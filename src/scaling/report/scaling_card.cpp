// The fastest cell of all, in one piece.

#include "scaling/report/scaling_card.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/report/gpus/beside_cpus.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/headline.h"
#include "scaling/report/trainings/run_list.h"

namespace cputrain::report {
namespace {

/// The fastest cell of a series.
struct Winner {
  const Series* series;
  FastestCell fastest;
};

const Grid& grid_of(const Series& series) {
  return series.strong.empty() ? series.weak : series.strong;
}

/// Simulated times stand aside where there is any other.
std::optional<Winner> winner_of(const ScalingTable& table) {
  std::optional<Winner> best;
  const auto key = [](const Winner& w) {
    const cells::Cell& cell = w.fastest.cell->cell;
    return std::pair(cells::is_forecast(cell.status), *cell.seconds_per_epoch);
  };
  for (const Series& series : table.series) {
    const auto fastest = fastest_of(grid_of(series));
    if (!fastest) continue;
    const Winner here{&series, *fastest};
    if (!best || key(here) < key(*best)) best = here;
  }
  return best;
}

std::string machine_text(const cells::CellMachine& machine) {
  if (!machine.platform.empty()) return "simulated platform " + machine.platform;
  return machine.cpu.empty() ? "" : processor_text(machine.cpu, machine.cores);
}

std::string speed_up_text(const Winner& winner) {
  const ScalingCell& place = *winner.fastest.cell;
  const int base = grid_of(*winner.series).bases.at(winner.fastest.row);
  if (!place.speed_up || base == place.cell.cpus) return "";
  // By geometric means, as the sentences below the card have it.
  const cells::Cell& from = grid_of(*winner.series).at(winner.fastest.row, base)->cell;
  return fmt::format("{} times, against {} {}", figure_text(gain_of(from, place.cell).of_means),
                     base, cpus_text(place.cell.backend, base));
}

/// "63.1 CPUs of cpu (58.2 to 70.1)"; empty where GPUs stand beside none.
std::string equal_text(const Winner& winner) {
  const auto& against = winner.fastest.cell->against_cpus;
  if (!against) return "";
  const std::string between = cpu_range_text(against->equal);
  return fmt::format("{} CPUs of {}{}", cpu_count_text(against->equal.cpus), winner.series->beside,
                     between.empty() ? "" : " (" + between + ")");
}

/// The table that the cell is from, whose command, date and commit are its own.
const cells::CellTable& source_of(const Winner& winner, const std::vector<CellSource>& sources) {
  for (const CellSource& source : sources) {
    if (source.folder == winner.fastest.cell->folder) return source.table;
  }
  return winner.series->about;
}

}  // namespace

std::optional<Card> scaling_card(const ScalingTable& table,
                                 const std::vector<CellSource>& sources) {
  const auto winner = winner_of(table);
  if (!winner) return std::nullopt;
  const ScalingCell& place = *winner->fastest.cell;
  const cells::Cell& cell = place.cell;
  const cells::CellTable& about = source_of(*winner, sources);
  Card card;
  card.subject = about.model;
  if (about.image_size > 0) card.subject += fmt::format(" at {0}x{0}", about.image_size);
  if (about.images_per_epoch > 0)
    card.subject += fmt::format(", {} images per epoch", with_commas(about.images_per_epoch));
  if (!about.data.empty()) card.subject += ", data " + without_folders(about.data);
  card.figure = figure_text(*cell.seconds_per_epoch) + " s";
  const std::string mark = mark_of(cell.status);
  card.what =
      fmt::format("per epoch{} on {}", mark.empty() ? "" : " (" + mark + ")", place_text(cell));
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) card.facts.emplace_back(name, text);
  };
  add("machine", machine_text(about.machine));
  if (!cell.device.empty()) add("GPUs", fmt::format("{} x {}", cell.gpus, cell.device));
  if (place.images_per_second) add("images/s", figure_text(*place.images_per_second));
  add("speed-up", speed_up_text(*winner));
  add("as quick as", equal_text(*winner));
  if (place.cost) add("cost", figure_text(*place.cost) + " per epoch at the price given");
  add("date", about.date);
  add("program", about.commit);
  card.command = about.command;
  return card;
}

}  // namespace cputrain::report
