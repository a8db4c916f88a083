#include "scaling/report/scaling_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/gpus.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/headline.h"
#include "scaling/report/trainings/run_list.h"

namespace cputrain::report {
namespace {

std::string document_title(const ScalingTable& table) {
  if (table.series.empty()) return "Seconds per epoch";
  const cells::CellTable& about = table.series.front().about;
  std::string title = "Seconds per epoch by CPUs and batch size";
  if (!about.model.empty()) title += ": " + about.model;
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

std::string machine_text(const cells::CellMachine& machine) {
  if (!machine.platform.empty()) return "simulated platform " + machine.platform;
  return machine.cpu.empty() ? "" : processor_text(machine.cpu, machine.cores);
}

/// "AMD EPYC, 2 cores; 2026-11-25; commit abc1234, Release": what the figures of a source are of.
std::string origin_of(const cells::CellTable& t) {
  const std::string machine = machine_text(t.machine);
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

/// The fastest cell of all, measured where there is any that is; nothing where no cell has a time.
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
  card.add("machine", machine_text(about.machine));
  if (!cell.device.empty()) card.add("GPUs", fmt::format("{} x {}", cell.gpus, cell.device));
  if (place.images_per_second) card.add("images/s", figure_text(*place.images_per_second));
  card.add("speed-up", speed_up_text(*winner));
  card.add("as quick as", equal_text(*winner));
  if (place.cost) card.add("cost", figure_text(*place.cost) + " per epoch at the price given");
  card.add("date", about.date);
  card.add("program", about.commit);
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

Document scaling_document(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  const std::vector<CellSource>& sources = facts.sources;
  Document document{document_title(table), headlines(table)};
  add_all(document.headline, equal_sentences(table));
  document.card = scaling_card(table, sources);
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
