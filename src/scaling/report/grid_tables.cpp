#include "scaling/report/grid_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/text.h"
#include "system/lost_time.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {
namespace {

/// The number of a note on a cell that has a time, 0 where it is as good as any.
int note_on_time(const cells::Cell& cell, DocumentTable& table) {
  std::vector<std::string> notes;
  if (!cell.reason.empty()) notes.push_back(cell.reason);
  if (cell.includes_warm_up) notes.push_back("includes steps that tried algorithms");
  if (cell.cpu_wait.value_or(0) >= system::kWaitWorthSaying) {
    notes.push_back(fmt::format("threads of a rank waited {:.0f} % of their time for a CPU",
                                100 * *cell.cpu_wait));
  }
  return notes.empty() ? 0 : table.note(join(notes, "; "));
}

std::string threads_text(int threads) {
  return threads > 1 ? fmt::format(", {} threads", threads) : "";
}

constexpr std::size_t kMostColumns = 12;

/// Series that share a table: beside each other, a group of columns each; or below each other,
/// where they differ in axes alone.
struct Chosen {
  std::vector<const Series*> series;
  bool stacked = false;

  /// What tells one of those below each other from the rest, behind a comma; else empty.
  std::string own_text(const Series& one) const {
    if (!stacked) return "";
    std::vector<cells::SeriesIdentity> all;
    for (const Series* s : series) all.push_back(s->identity);
    const std::string apart = cells::options_apart(one.identity, all);
    return apart.empty() ? "" : ", " + apart;
  }
};

/// Whether an epoch is the same work.
bool same_epoch(const cells::CellTable& a, const cells::CellTable& b) {
  return a.model == b.model && a.image_size == b.image_size &&
         a.images_per_epoch == b.images_per_epoch;
}

/// Columns: CPUs of a series, or of all of them (nullptr) where they stand below each other.
std::vector<std::pair<const Series*, int>> grid_columns(const Chosen& part, Grid Series::*grid) {
  std::vector<std::pair<const Series*, int>> columns;
  std::set<int> all;
  for (const Series* s : part.series) {
    for (const int cpus : (s->*grid).cpus) columns.emplace_back(s, cpus), all.insert(cpus);
  }
  if (!part.stacked) return columns;
  columns.clear();
  for (const int cpus : all) columns.emplace_back(nullptr, cpus);
  return columns;
}

/// Devices stand beside CPUs with the same work where that is not too wide, and beside no others
/// than those that they are compared with.
bool fits_beside(const Chosen& part, const Series& series, Grid Series::*grid) {
  const bool others = !series.beside.empty() && part.series.front()->name != series.beside;
  return !part.stacked && !others && training::is_device(series.backend) &&
         same_epoch(part.series.front()->about, series.about) &&
         grid_columns(part, grid).size() + (series.*grid).cpus.size() <= kMostColumns;
}

std::vector<Chosen> divided(const ScalingTable& table, Grid Series::*grid) {
  std::vector<Chosen> parts;
  for (const Series& series : table.series) {
    if ((series.*grid).empty()) continue;
    const auto below = std::ranges::find_if(parts, [&](const Chosen& part) {
      return (part.stacked || part.series.size() == 1) &&
             cells::differ_in_axes_alone(part.series.front()->identity, series.identity);
    });
    const auto beside = std::ranges::find_if(
        parts, [&](const Chosen& part) { return fits_beside(part, series, grid); });
    if (below != parts.end()) {
      below->series.push_back(&series);
      below->stacked = true;
    } else if (beside != parts.end()) {
      beside->series.push_back(&series);
    } else {
      parts.push_back({{&series}});
    }
  }
  return parts;
}

Entry entry_of(const ScalingCell* cell, const GridFigure& figure, DocumentTable& table) {
  if (!cell) return {};
  if (figure.is_time || cell->cell.status == cells::CellStatus::absent) {
    return seconds_entry(cell->cell, table);
  }
  const auto value = figure.value(*cell);
  const std::string beside = figure.beside ? figure.beside(*cell) : "";
  if (!value) {
    const std::string words = figure.words ? figure.words(*cell) : "";
    const std::string sure = mark_of(figure.status(*cell));
    if (!words.empty()) return {words, sure == table.shared_mark ? "" : sure, 0};
    return {beside.empty() ? kNotKnown : figure.missing, beside, 0};
  }
  std::string mark = mark_of(figure.status(*cell));
  if (mark == table.shared_mark) mark.clear();
  return {figure.text(*value), mark + (mark.empty() || beside.empty() ? "" : ", ") + beside, 0,
          value};
}

/// The mark that all figures of a table have; empty where they differ.
std::string shared_mark(const Chosen& series, Grid Series::*grid, const GridFigure& figure) {
  std::set<std::string> marks;
  for (const Series* s : series.series) {
    for (const auto& [where, cell] : (s->*grid).cells) {
      if (figure.value(cell)) marks.insert(mark_of(figure.status(cell)));
    }
  }
  return marks.size() == 1 ? *marks.begin() : "";
}

/// ": cpu, AMD EPYC, 2 cores" where another table has other series; of those below each other what
/// they have alike.
std::string whose_text(const ScalingTable& all, const Chosen& part) {
  if (part.series.size() == all.series.size()) return "";
  const Series& first = *part.series.front();
  const std::string own = part.own_text(first);
  if (part.stacked && !first.name.ends_with(own)) return ": " + first.backend;
  const std::string name = first.name.substr(0, first.name.size() - own.size());
  return part.stacked || part.series.size() == 1 ? ": " + name : "";
}

/// Rows of one label for each series of its own, or for all of them, by what `entry` has of a
/// series at so many CPUs.
void add_rows(const Chosen& part, Grid Series::*grid, const std::string& label, bool apart,
              const std::function<Entry(const Series&, int)>& entry, DocumentTable& table) {
  const auto columns = grid_columns(part, grid);
  const auto lines = part.stacked ? part.series : std::vector<const Series*>{nullptr};
  for (const Series* line : lines) {
    Row row{label + (line ? part.own_text(*line) : ""), {}, apart};
    for (const auto& [series, cpus] : columns) {
      row.entries.push_back(entry(line ? *line : *series, cpus));
    }
    if (!apart || !row.empty()) table.rows.push_back(std::move(row));
  }
}

DocumentTable table_of(const ScalingTable& all, const Chosen& part, Grid Series::*grid,
                       const GridFigure& figure) {
  const bool devices = std::ranges::all_of(part.series, training::is_device, &Series::backend);
  DocumentTable table{.shared_mark = shared_mark(part, grid, figure), .sortable = true};
  table.caption = figure.caption + shared_text(table.shared_mark) + whose_text(all, part);
  table.corner = fmt::format("{} / {}", grid == &Series::weak ? "batch per rank" : "batch",
                             devices ? "GPUs" : "CPUs");
  for (const auto& [series, cpus] : grid_columns(part, grid)) {
    table.head.push_back(std::to_string(cpus));
  }
  std::set<GridRow> rows;
  for (const Series* s : part.series) {
    const Grid& g = s->*grid;
    rows.insert(g.rows.begin(), g.rows.end());
    if (part.stacked || part.series.size() == 1) continue;
    const bool mixed = training::is_device(s->backend) && !devices;
    table.groups.emplace_back(s->name + (mixed ? " (GPUs)" : ""), static_cast<int>(g.cpus.size()));
  }
  for (const GridRow& row : rows) {
    const auto entry = [&](const Series& s, int cpus) {
      return entry_of((s.*grid).at(row, cpus), figure, table);
    };
    add_rows(part, grid, row_text(row), false, entry, table);
  }
  return table;
}

/// A note where the repeats do not show that two batches differ, or are too few to say.
int note_on_increase(const Grid& grid, const BatchIncrease& increase, int cpus,
                     DocumentTable& table) {
  const TimeRatio ratio =
      gain_of(grid.at(increase.from, cpus)->cell, grid.at(increase.to, cpus)->cell);
  if (!ratio.interval) return table.note("too few repeats to show a difference");
  const bool holds_one = ratio.interval->low <= 1 && ratio.interval->high >= 1;
  return holds_one ? table.note("no difference shown: the 95 % interval of the repeats holds 0")
                   : 0;
}

Entry increase_entry(const Series& series, const BatchIncrease& increase, int cpus,
                     DocumentTable& table) {
  if (!increase.by_cpus.contains(cpus)) return {};
  const std::string mark = mark_of(increase.status);
  const double percent = 100 * increase.by_cpus.at(cpus);
  return {fmt::format("{:+.1f}", percent), mark == table.shared_mark ? "" : mark,
          note_on_increase(series.strong, increase, cpus, table), percent};
}

/// What the largest batch saves: a row for each pair of batches, with entries under the series that
/// have this pair.
void add_increase_rows(const Chosen& part, DocumentTable& table) {
  std::set<std::pair<std::size_t, std::size_t>> done;
  for (const Series* one : part.series) {
    const auto pair = batch_increase(one->strong);
    if (!pair || pair->by_cpus.empty() || !done.emplace(pair->from, pair->to).second) continue;
    const auto entry = [&](const Series& s, int cpus) {
      const auto own = batch_increase(s.strong);
      const bool same = own && own->from == pair->from && own->to == pair->to;
      return same ? increase_entry(s, *own, cpus, table) : Entry{};
    };
    add_rows(part, &Series::strong, increase_text(pair->from, pair->to), true, entry, table);
  }
}

}  // namespace

std::string mark_of(cells::CellStatus status) {
  return status == cells::CellStatus::measured ? "" : cells::status_name(status);
}

std::string cpus_text(const std::string& backend, int count) {
  return std::string(training::is_device(backend) ? "GPU" : "CPU") + (count == 1 ? "" : "s");
}

std::string reason_text(const cells::Cell& cell) {
  return cell.reason.empty() ? "no reason was given" : cell.reason;
}

Entry seconds_entry(const cells::Cell& cell, DocumentTable& table) {
  if (!cell.seconds_per_epoch) return {"n/a", "", table.note(reason_text(cell))};
  const std::string mark = mark_of(cell.status);
  return {figure_text(*cell.seconds_per_epoch), mark == table.shared_mark ? "" : mark,
          note_on_time(cell, table), cell.seconds_per_epoch, cell.command};
}

std::optional<cells::CellStatus> shared_status(const ScalingTable& table) {
  std::optional<cells::CellStatus> first;
  bool alike = true;
  table.for_each([&](const Series&, const ScalingCell& c) {
    if (!c.cell.seconds_per_epoch) return;
    if (!first) first = c.cell.status;
    alike = alike && c.cell.status == *first;
  });
  return alike ? first : std::nullopt;
}

std::string shared_text(const std::string& mark) { return mark.empty() ? "" : ", all " + mark; }

std::string row_text(const GridRow& row) {
  return std::to_string(row.batch) + threads_text(row.threads);
}

std::string place_text(const cells::Cell& cell) {
  return fmt::format("{} {}, batch ", cell.cpus, cpus_text(cell.backend, cell.cpus)) +
         (cell.batch_per_rank
              ? fmt::format("{} per rank", *cell.batch_per_rank) + threads_text(cell.threads)
              : std::to_string(cell.batch));
}

std::string place_text(const ScalingTable& table, const Series& series, const cells::Cell& cell) {
  return (table.series.size() > 1 ? series.name + ": " : "") + place_text(cell);
}

std::vector<DocumentTable> grid_tables(const ScalingTable& all, Grid Series::*grid,
                                       const GridFigure& figure) {
  std::vector<DocumentTable> tables;
  for (const Chosen& part : divided(all, grid)) {
    const bool known = figure.is_time || std::ranges::any_of(part.series, [&](const Series* s) {
                         return std::ranges::any_of((s->*grid).cells, [&](const auto& place) {
                           return figure.knows(place.second);
                         });
                       });
    if (!known) continue;
    DocumentTable& table = tables.emplace_back(table_of(all, part, grid, figure));
    if (figure.is_time && grid == &Series::strong) add_increase_rows(part, table);
  }
  return tables;
}

std::vector<DocumentTable> both_grids(const ScalingTable& table, GridFigure figure) {
  std::vector<DocumentTable> tables = grid_tables(table, &Series::strong, figure);
  figure.caption = "Weak scaling: " + figure.caption;
  add_all(tables, grid_tables(table, &Series::weak, figure));
  return tables;
}

}  // namespace cputrain::report
