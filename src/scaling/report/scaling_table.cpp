#include "scaling/report/scaling_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "scaling/cells/explanation.h"
#include "training/request/flag_grammars.h"

namespace cputrain::report {

const ScalingCell* Grid::at(const GridRow& row, int cpu) const {
  const auto found = cells.find({row, cpu});
  return found == cells.end() ? nullptr : &found->second;
}

std::vector<const cells::Cell*> Grid::timed(const GridRow& row) const {
  std::vector<const cells::Cell*> timed;
  for (const int cpu : cpus) {
    const ScalingCell* here = at(row, cpu);
    if (here && here->cell.seconds_per_epoch) timed.push_back(&here->cell);
  }
  return timed;
}

std::optional<Interval> validation_interval(const Series& series, const cells::Cell& cell) {
  const auto images = static_cast<double>(series.about.validation_images);
  if (!cell.val_accuracy || images < 1) return std::nullopt;
  return accuracy_interval(*cell.val_accuracy, images);
}

bool ScalingTable::has_strong() const {
  return std::ranges::any_of(series, [](const Series& s) { return !s.strong.empty(); });
}

void ScalingTable::for_each(
    const std::function<void(const Series&, const ScalingCell&)>& see) const {
  for (const auto grid : {&Series::strong, &Series::weak}) {
    for (const Series& one : series) {
      for (const auto& [where, cell] : (one.*grid).cells) see(one, cell);
    }
  }
}

namespace {

/// Cells of one series before they are placed, each with its folder.
struct Gathered {
  cells::CellTable about;
  std::map<cells::Place, std::pair<cells::Cell, std::filesystem::path>> cells;
};

/// What a series mixes though its kernels are alike; empty where all of it is of one commit.
std::string commits_remark(const std::string& series, const Gathered& gathered) {
  std::map<std::string, std::size_t> commits;
  for (const auto& [where, found] : gathered.cells) {
    if (found.first.seconds_per_epoch) ++commits[found.first.origin.commit];
  }
  if (commits.size() < 2) return "";
  std::vector<std::string> parts;
  for (const auto& [commit, count] : commits) {
    parts.push_back(counted(count, "cell") + " of " +
                    (commit.empty() ? "one that is not recorded" : commit));
  }
  return fmt::format("{}: cells of {} commits: {}.", series, commits.size(), join(parts, ", "));
}

/// Takes the cell in, unless the same one is there and better founded. True where one of two went.
bool gather(Gathered& to, const cells::Cell& cell, const std::filesystem::path& folder) {
  const auto [found, fresh] = to.cells.try_emplace(cells::place_of(cell), cell, folder);
  if (fresh) return false;
  if (cell.status <= found->second.first.status) found->second = {cell, folder};
  return true;
}

void place(Grid& grid, const cells::Cell& cell, const GridRow& row,
           const std::filesystem::path& folder) {
  const auto [found, fresh] = grid.cells.try_emplace({row, cell.cpus});
  ScalingCell& here = found->second;
  const auto slow = [](const cells::Cell& c) { return c.seconds_per_epoch.value_or(1e300); };
  if (fresh || slow(cell) < slow(here.cell)) {
    here.cell = cell;
    here.folder = folder;
  }
  here.splits.push_back(cell);
  std::ranges::stable_sort(here.splits, {}, slow);
}

/// Rows and columns: a file with a hundred thousand cells must not make a table of their square.
constexpr std::size_t kMostLines = 500;

void derive(Grid& grid, const cells::CellTable& about, const cells::Prices& prices) {
  const std::size_t images = about.images_per_epoch;
  std::set<int> cpus;
  std::set<GridRow> rows;
  for (const auto& [where, cell] : grid.cells) {
    rows.insert(where.first);
    cpus.insert(where.second);
    if (cell.cell.seconds_per_epoch) grid.bases.try_emplace(where.first, where.second);
  }
  if (std::max(cpus.size(), rows.size()) > kMostLines) {
    fail(ExitCode::data,
         "a table of {} batches by {} CPU counts (too many to read); report parts of it, {} of "
         "each at most",
         rows.size(), cpus.size(), kMostLines);
  }
  grid.cpus.assign(cpus.begin(), cpus.end());
  grid.rows.assign(rows.begin(), rows.end());
  for (auto& [where, c] : grid.cells) {
    if (!c.cell.seconds_per_epoch) continue;
    const double seconds = *c.cell.seconds_per_epoch;
    c.images_per_second = c.cell.images_per_second;
    if (!c.images_per_second && images > 0) {
      c.images_per_second = static_cast<double>(images) / seconds;
    }
    const int base_cpus = grid.bases.at(where.first);
    const cells::Cell& base = grid.at(where.first, base_cpus)->cell;
    c.speed_up = *base.seconds_per_epoch / seconds;
    c.efficiency = *c.speed_up * base_cpus / c.cell.cpus;
    c.suspect = cells::is_suspect(*c.efficiency);
    c.against = std::max(c.cell.status, base.status);
    if (c.cell.gflops && c.cell.fma_gflops.value_or(0) > 0) {
      c.peak_share = *c.cell.gflops / *c.cell.fma_gflops;
    }
    c.cost = prices.of(c.cell);
    c.chip_share = cells::chip_share(about, c.cell);
    c.memory_share = cells::memory_share(about, c.cell);
  }
}

Series series_of(const cells::SeriesIdentity& identity,
                 const std::vector<cells::SeriesIdentity>& all, const Gathered& gathered,
                 const cells::Prices& prices) {
  Series series{cells::name_of(identity, all), identity.backend, gathered.about, {}, {}, identity};
  for (const auto& [where, found] : gathered.cells) {
    const auto& [cell, folder] = found;
    if (cell.batch_per_rank) {
      const auto each = static_cast<std::size_t>(*cell.batch_per_rank);
      place(series.weak, cell, {each, cell.threads}, folder);
    } else {
      place(series.strong, cell, cell.batch, folder);
    }
  }
  derive(series.strong, gathered.about, prices);
  derive(series.weak, gathered.about, prices);
  return series;
}

/// A forecast needs no data, but for how many images there are.
bool same_work(const Series& a, const Series& b) {
  const cells::SeriesIdentity &x = a.identity, &y = b.identity;
  return std::tie(x.model, x.image_size, x.images, x.simulated) ==
             std::tie(y.model, y.image_size, y.images, y.simulated) &&
         (x.data == y.data || x.simulated);
}

/// Flags that two series have alike.
std::ptrdiff_t alike(const Series& a, const Series& b) {
  return std::ranges::count_if(a.identity.options, [&](const auto& option) {
    const auto found = b.identity.options.find(option.first);
    return found != b.identity.options.end() && found->second == option.second;
  });
}

/// Nullptr where there is none.
const Series* cpus_beside(const Series& gpus, const std::vector<Series>& all) {
  const Series* best = nullptr;
  const auto fit = [&](const Series& cpus) {
    const cells::SeriesIdentity &a = cpus.identity, &b = gpus.identity;
    return std::pair(std::tie(a.machine, a.processor) == std::tie(b.machine, b.processor),
                     alike(cpus, gpus));
  };
  for (const Series& series : all) {
    if (training::is_device(series.backend) || series.strong.bases.empty()) continue;
    if (same_work(series, gpus) && (!best || fit(series) > fit(*best))) best = &series;
  }
  return best;
}

/// Gives every series of devices the series of CPUs that it is compared with, and its cells what
/// follows from both. Those have the same model, image size, images and data, and both are of runs
/// or both are forecasts, whose data may differ; of several the one of the same machine and with
/// most flags alike.
void set_beside_cpus(std::vector<Series>& all) {
  for (Series& series : all) {
    if (!training::is_device(series.backend)) continue;
    const Series* cpus = cpus_beside(series, all);
    if (!cpus) continue;
    series.beside = cpus->name;
    for (auto& [where, here] : series.strong.cells) {
      const auto beside = cpus->strong.timed(where.first);
      if (beside.empty() || !here.cell.seconds_per_epoch) continue;
      const cells::Cell& first = *beside.front();
      here.against_cpus =
          AgainstCpus{.cpus = first.cpus,
                      .speed_up = *first.seconds_per_epoch / *here.cell.seconds_per_epoch,
                      .speed_up_status = std::max(here.cell.status, first.status),
                      .equal = cells::equal_cpus(here.cell, beside)};
    }
  }
}

/// The metrics of the repeat whose time is nearest to the cell's median; nothing where there is no
/// such file.
std::optional<std::filesystem::path> metrics_of(const ScalingCell& place) {
  const cells::Cell& cell = place.cell;
  if (cell.runs.empty()) return std::nullopt;
  std::size_t chosen = 0;
  if (cell.runs.size() == cell.repeats.size() && cell.seconds_per_epoch) {
    const auto nearest = std::ranges::min_element(cell.repeats, {}, [&](double seconds) {
      return std::fabs(seconds - *cell.seconds_per_epoch);
    });
    chosen = static_cast<std::size_t>(nearest - cell.repeats.begin());
  }
  std::error_code error;
  auto file =
      std::filesystem::canonical(place.folder / cell.runs[chosen] / runfiles::kMetricsName, error);
  return error ? std::nullopt : std::optional(std::move(file));
}

std::vector<double> repeats_of(const cells::Cell& c) {
  return c.repeats.empty() ? std::vector<double>{*c.seconds_per_epoch} : c.repeats;
}

}  // namespace

bool ScalingTable::any(const std::function<bool(const ScalingCell&)>& is_such) const {
  bool found = false;
  for_each([&](const Series&, const ScalingCell& c) { found = found || is_such(c); });
  return found;
}

ScalingTable make_scaling_table(const std::vector<CellSource>& sources,
                                const cells::Prices& prices) {
  std::vector<cells::SeriesIdentity> order;
  std::map<cells::SeriesIdentity, Gathered> all;
  int doubled = 0;
  for (const CellSource& source : sources) {
    for (cells::Cell cell : source.table.cells) {
      if (cell.origin.commit.empty()) cell.origin.commit = source.table.commit;
      const cells::SeriesIdentity identity =
          cells::identity_of(source.table, cell, source.folder.string());
      const auto [found, fresh] = all.try_emplace(identity);
      if (fresh) {
        order.push_back(identity);
        found->second.about = source.table;
        found->second.about.cells.clear();
        found->second.about.options = identity.options;
      }
      doubled += gather(found->second, cell, source.folder);
    }
  }
  ScalingTable table;
  table.remarks = cells::identity_remarks(order);
  for (const bool devices : {false, true}) {
    for (const cells::SeriesIdentity& identity : order) {
      if (training::is_device(identity.backend) != devices) continue;
      const Series& series =
          table.series.emplace_back(series_of(identity, order, all.at(identity), prices));
      const std::string commits = commits_remark(series.name, all.at(identity));
      if (!commits.empty()) table.remarks.push_back(commits);
    }
  }
  set_beside_cpus(table.series);
  if (doubled > 0) {
    table.remarks.push_back(
        fmt::format("{} cells are in more than one folder: the better founded figure stands here, "
                    "of equals the one of the later folder.",
                    doubled));
  }
  return table;
}

TimeRatio gain_of(const cells::Cell& from, const cells::Cell& to) {
  return compare_times(repeats_of(to), repeats_of(from));
}

std::string increase_text(std::size_t from, std::size_t to) {
  return fmt::format("time saved by batch {} against batch {} (%)", to, from);
}

std::optional<BatchIncrease> batch_increase(const Grid& grid) {
  constexpr std::size_t kPublished = 128;
  if (grid.rows.size() < 2) return std::nullopt;
  const bool published =
      std::ranges::find(grid.rows, kPublished, &GridRow::batch) != grid.rows.end();
  BatchIncrease increase{
      published ? kPublished : grid.rows.front().batch, grid.rows.back().batch, {}, {}};
  if (increase.from == increase.to) increase.from = grid.rows.front().batch;
  for (const int cpus : grid.cpus) {
    const ScalingCell* from = grid.at(increase.from, cpus);
    const ScalingCell* to = grid.at(increase.to, cpus);
    if (!from || !to || !from->speed_up || !to->speed_up) continue;
    increase.by_cpus[cpus] = (*from->cell.seconds_per_epoch - *to->cell.seconds_per_epoch) /
                             *from->cell.seconds_per_epoch;
    increase.status = std::max({increase.status, from->cell.status, to->cell.status});
  }
  return increase;
}

Curves curves_of(const ScalingTable& table) {
  Curves curves;
  // A hostile table may name one large file in all of its cells.
  std::map<std::filesystem::path, Curve> files;
  table.for_each([&](const Series& series, const ScalingCell& cell) {
    const auto file = metrics_of(cell);
    if (!file) return;
    if (curves.shown.size() == kMostCurves) {
      ++curves.left_out;
      return;
    }
    if (!files.contains(*file)) files.emplace(*file, read_curve(*file));
    const Curve& curve = files.at(*file);
    if (!curve.images.empty()) curves.shown.push_back({&series, &cell, curve});
  });
  return curves;
}

}  // namespace cputrain::report
