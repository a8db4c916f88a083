#include "report/grid_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <set>

#include "core/text.h"
#include "report/headline.h"
#include "system/lost_time/cpu_wait.h"

namespace cputrain::report {

std::string figure_text(double value) {
  const double size = std::fabs(value);
  // Rounding first: 99.96 is 100, not 100.0.
  int decimals = 0;
  for (double limit = 99.95; decimals < 6 && size < limit; limit /= 10) ++decimals;
  return size == 0 ? "0" : fmt::format("{:.{}f}", value, decimals);
}

std::string mark_of(cells::CellStatus status) {
  return status == cells::CellStatus::measured ? "" : cells::status_name(status);
}

std::string cpus_text(const std::string& backend, int count) {
  return std::string(cells::is_device(backend) ? "GPU" : "CPU") + (count == 1 ? "" : "s");
}

std::string reason_text(const cells::Cell& cell) {
  return cell.reason.empty() ? "no reason was given" : cell.reason;
}

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

}  // namespace

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

namespace {

std::string threads_text(int threads) {
  return threads > 1 ? fmt::format(", {} threads", threads) : "";
}

}  // namespace

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

namespace {

constexpr std::size_t kMostColumns = 12;

using Chosen = std::vector<const Series*>;

/// Whether an epoch is the same work.
bool same_epoch(const cells::CellTable& a, const cells::CellTable& b) {
  return a.model == b.model && a.image_size == b.image_size &&
         a.images_per_epoch == b.images_per_epoch;
}

/// Series that share a table where that is not too wide: CPUs, beside them devices with the same
/// work and what differs in axes alone.
std::vector<Chosen> divided(const ScalingTable& table, Grid Series::*grid) {
  std::vector<Chosen> parts;
  const auto columns = [&](const Chosen& part) {
    std::size_t sum = 0;
    for (const Series* s : part) sum += (s->*grid).cpus.size();
    return sum;
  };
  for (const Series& series : table.series) {
    if ((series.*grid).empty()) continue;
    const auto fits = std::ranges::find_if(parts, [&](const Chosen& part) {
      const bool beside =
          (cells::is_device(series.backend) && same_epoch(part.front()->about, series.about)) ||
          cells::differ_in_axes_alone(part.front()->identity, series.identity);
      return beside && columns(part) + (series.*grid).cpus.size() <= kMostColumns;
    });
    if (fits == parts.end()) {
      parts.push_back({&series});
    } else {
      fits->push_back(&series);
    }
  }
  return parts;
}

Entry entry_of(const ScalingCell* cell, const GridFigure& figure, DocumentTable& table) {
  if (!cell) return {};
  if (cell->cell.status == cells::CellStatus::absent) {
    return {"n/a", "", table.note(reason_text(cell->cell))};
  }
  const auto value = figure.value(*cell);
  const std::string beside = figure.beside ? figure.beside(*cell) : "";
  if (!value) return {beside.empty() ? "–" : figure.missing, beside, 0};
  const int note = figure.is_time ? note_on_time(cell->cell, table) : 0;
  std::string mark = mark_of(figure.status(*cell));
  if (mark == table.shared_mark) mark.clear();
  return {figure.text(*value), mark + (mark.empty() || beside.empty() ? "" : ", ") + beside, note,
          value, figure.is_time ? cell->cell.command : ""};
}

/// The mark that all figures of a table have; empty where they differ.
std::string shared_mark(const Chosen& series, Grid Series::*grid, const GridFigure& figure) {
  std::set<std::string> marks;
  for (const Series* s : series) {
    for (const auto& [where, cell] : (s->*grid).cells) {
      if (figure.value(cell)) marks.insert(mark_of(figure.status(cell)));
    }
  }
  return marks.size() == 1 ? *marks.begin() : "";
}

DocumentTable table_of(const ScalingTable& all, const Chosen& series, Grid Series::*grid,
                       const GridFigure& figure) {
  const bool weak = grid == &Series::weak;
  DocumentTable table;
  table.sortable = true;
  table.shared_mark = shared_mark(series, grid, figure);
  table.caption = figure.caption + shared_text(table.shared_mark);
  if (series.size() == 1 && all.series.size() > 1) table.caption += ": " + series[0]->name;
  const bool devices = std::ranges::all_of(series, cells::is_device, &Series::backend);
  table.corner =
      fmt::format("{} / {}", weak ? "batch per rank" : "batch", devices ? "GPUs" : "CPUs");
  std::set<GridRow> rows;
  for (const Series* s : series) {
    const Grid& g = s->*grid;
    rows.insert(g.rows.begin(), g.rows.end());
    if (series.size() > 1) {
      const bool mixed = cells::is_device(s->backend) && !devices;
      table.groups.emplace_back(s->name + (mixed ? " (GPUs)" : ""),
                                static_cast<int>(g.cpus.size()));
    }
    for (const int cpus : g.cpus) table.head.push_back(std::to_string(cpus));
  }
  for (const GridRow& row : rows) {
    Row& line = table.rows.emplace_back(Row{row_text(row), {}, false});
    for (const Series* s : series) {
      const Grid& g = s->*grid;
      for (const int cpus : g.cpus)
        line.entries.push_back(entry_of(g.at(row, cpus), figure, table));
    }
  }
  return table;
}

}  // namespace

std::vector<DocumentTable> grid_tables(const ScalingTable& all, Grid Series::*grid,
                                       const GridFigure& figure) {
  std::vector<DocumentTable> tables;
  for (const Chosen& series : divided(all, grid)) {
    const bool known = figure.is_time || std::ranges::any_of(series, [&](const Series* s) {
                         return std::ranges::any_of((s->*grid).cells, [&](const auto& place) {
                           return figure.value(place.second).has_value() ||
                                  (figure.beside && !figure.beside(place.second).empty());
                         });
                       });
    if (known) tables.push_back(table_of(all, series, grid, figure));
  }
  return tables;
}

std::vector<DocumentTable> both_grids(const ScalingTable& table, GridFigure figure) {
  std::vector<DocumentTable> tables = grid_tables(table, &Series::strong, figure);
  figure.caption = "Weak scaling: " + figure.caption;
  for (auto& t : grid_tables(table, &Series::weak, figure)) tables.push_back(std::move(t));
  return tables;
}

namespace {

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

/// The row of one pair of batches: entries under the series that have this pair, others stay empty.
Row increase_row(const Chosen& series, std::size_t from, std::size_t to, DocumentTable& table) {
  Row row{increase_text(from, to), {}, true};
  for (const Series* s : series) {
    const auto own = batch_increase(s->strong);
    const bool same = own && own->from == from && own->to == to;
    for (const int cpus : s->strong.cpus) {
      const bool known = same && own->by_cpus.contains(cpus);
      if (!known) {
        row.entries.push_back({});
        continue;
      }
      const std::string mark = mark_of(own->status);
      const double percent = 100 * own->by_cpus.at(cpus);
      row.entries.push_back({fmt::format("{:+.1f}", percent), mark == table.shared_mark ? "" : mark,
                             note_on_increase(s->strong, *own, cpus, table), percent});
    }
  }
  return row;
}

}  // namespace

void add_increase_rows(const ScalingTable& all, std::vector<DocumentTable>& tables) {
  const std::vector<Chosen> parts = divided(all, &Series::strong);
  assert(parts.size() == tables.size());  // times have a table even where all of them are n/a
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::set<std::pair<std::size_t, std::size_t>> done;
    for (const Series* series : parts[i]) {
      const auto increase = batch_increase(series->strong);
      if (!increase || increase->by_cpus.empty()) continue;
      if (!done.emplace(increase->from, increase->to).second) continue;
      tables[i].rows.push_back(increase_row(parts[i], increase->from, increase->to, tables[i]));
    }
  }
}

}  // namespace cputrain::report
