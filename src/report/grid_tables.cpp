#include "report/grid_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace cputrain {

std::string figure_text(double value) {
  const double size = std::fabs(value);
  // Rounding first: 99.96 is 100, not 100.0.
  int decimals = 0;
  for (double limit = 99.95; decimals < 6 && size < limit; limit /= 10) ++decimals;
  return size == 0 ? "0" : fmt::format("{:.{}f}", value, decimals);
}

std::string mark_of(CellStatus status) {
  return status == CellStatus::measured ? "" : status_name(status);
}

std::string cpus_text(const std::string& backend, int count) {
  return std::string(is_device(backend) ? "GPU" : "CPU") + (count == 1 ? "" : "s");
}

std::string cell_name(const ScalingTable& table, const Series& series, const Cell& cell) {
  const std::string batch = cell.batch_per_rank
                                ? fmt::format("batch {} a rank", *cell.batch_per_rank)
                                : fmt::format("batch {}", cell.batch);
  return (table.series.size() > 1 ? series.name + ": " : "") +
         fmt::format("{} {}, {}", cell.cpus, cpus_text(cell.backend, cell.cpus), batch);
}

namespace {

constexpr std::size_t kMostColumns = 12;

using Chosen = std::vector<const Series*>;

/// Whether an epoch is the same work.
bool same_epoch(const CellTable& a, const CellTable& b) {
  return a.model == b.model && a.image_size == b.image_size &&
         a.images_per_epoch == b.images_per_epoch;
}

/// Series that share a table: CPUs, and beside them devices with the same work where that is not
/// too wide.
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
      return is_device(series.backend) && same_epoch(part.front()->about, series.about) &&
             columns(part) + (series.*grid).cpus.size() <= kMostColumns;
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
  if (cell->cell.status == CellStatus::absent) {
    const std::string& reason = cell->cell.reason;
    return {"n/a", "", table.note(reason.empty() ? "no reason was given" : reason)};
  }
  const auto value = figure.value(*cell);
  if (!value) return {"–", "", 0};
  return {figure.text(*value), mark_of(figure.status(*cell)), 0};
}

DocumentTable table_of(const ScalingTable& all, const Chosen& series, Grid Series::*grid,
                       const GridFigure& figure) {
  const bool weak = grid == &Series::weak;
  DocumentTable table;
  table.caption = figure.caption;
  if (series.size() == 1 && all.series.size() > 1) table.caption += ": " + series[0]->name;
  const bool devices = std::ranges::all_of(series, is_device, &Series::backend);
  table.corner = fmt::format("{} / {}", weak ? "batch a rank" : "batch", devices ? "GPUs" : "CPUs");
  std::set<std::size_t> rows;
  for (const Series* s : series) {
    const Grid& g = s->*grid;
    rows.insert(g.rows.begin(), g.rows.end());
    if (series.size() > 1) {
      const bool mixed = is_device(s->backend) && !devices;
      table.groups.emplace_back(s->name + (mixed ? " (GPUs)" : ""),
                                static_cast<int>(g.cpus.size()));
    }
    for (const int cpus : g.cpus) table.head.push_back(std::to_string(cpus));
  }
  for (const std::size_t row : rows) {
    Row& line = table.rows.emplace_back(Row{std::to_string(row), {}, false});
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
    const bool known = figure.always || std::ranges::any_of(series, [&](const Series* s) {
                         return std::ranges::any_of((s->*grid).cells, [&](const auto& place) {
                           return figure.value(place.second).has_value();
                         });
                       });
    if (known) tables.push_back(table_of(all, series, grid, figure));
  }
  return tables;
}

void add_increase_rows(const ScalingTable& all, std::vector<DocumentTable>& tables) {
  const std::vector<Chosen> parts = divided(all, &Series::strong);
  if (parts.size() != tables.size()) return;  // one of them has no times
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::optional<BatchIncrease> first;
    Row row{"", {}, true};
    for (const Series* series : parts[i]) {
      const auto increase = batch_increase(series->strong);
      if (increase && !first) first = increase;
      // Columns of another pair of batches would be another row.
      const bool same = increase && increase->from == first->from && increase->to == first->to;
      for (const int cpus : series->strong.cpus) {
        const bool known = same && increase->by_cpus.contains(cpus);
        row.entries.push_back(
            known ? Entry{fmt::format("{:+.1f} %", 100 * increase->by_cpus.at(cpus)),
                          mark_of(increase->status), 0}
                  : Entry{});
      }
    }
    if (!first || first->by_cpus.empty()) continue;
    row.label = fmt::format("increase of {} with regard to batch {}", first->to, first->from);
    tables[i].rows.push_back(std::move(row));
  }
}

}  // namespace cputrain
