#pragma once

#include <functional>

#include "scaling/cells/axes.h"
#include "scaling/cells/device_rates.h"
#include "scaling/report/trainings/run_record.h"

/// Tables of sweeps and simulations, merged and with what follows from their times.
namespace cputrain::report {

/// A table and the folder that its runs lie in.
struct CellSource {
  std::filesystem::path folder;
  cells::CellTable table;
  std::string name{};  ///< for readers
};

/// A cell of GPUs beside CPUs that do the same work at the same batch.
struct AgainstCpus {
  int cpus = 1;                                                   ///< the fewest that have a time
  double speed_up = 1;                                            ///< against those
  cells::CellStatus speed_up_status = cells::CellStatus::absent;  ///< the less certain of the two
  cells::EqualCpus equal{};
};

/// One place of a grid. A figure that follows from two cells is a measurement only where both are:
/// `status` of a figure is the less certain one.
struct ScalingCell {
  cells::Cell cell;                 ///< the quickest split into ranks and threads
  std::vector<cells::Cell> splits;  ///< all that were tried, quickest first
  std::filesystem::path folder;     ///< that its runs lie in
  std::optional<double> images_per_second;
  std::optional<double> speed_up;    ///< against the grid's base of this row
  std::optional<double> efficiency;  ///< speed-up by CPUs, as a part of 1
  bool suspect = false;              ///< speed-up above kMostSpeedUp times the CPUs'
  cells::CellStatus against = cells::CellStatus::absent;  ///< the less certain one of cell and base
  /// GFLOP/s by the multiply-adds that these CPUs can do, or mma.sync in the numbers of the cell.
  std::optional<double> peak_share;
  std::optional<double> cost;                          ///< an epoch's
  std::optional<double> chip_share{}, memory_share{};  ///< for GPUs (device_rates.h)
  std::optional<AgainstCpus> against_cpus{};           ///< for GPUs that stand beside CPUs
};

/// A global batch, whatever the split into ranks and threads; or in weak scaling the batch of a
/// rank and its threads: on as many CPUs, ranks of other threads are other ranks and another global
/// batch, so their times are of other work.
struct GridRow {
  std::size_t batch;
  int threads;  ///< a rank's; 0 where the batch is global

  GridRow(std::size_t row_batch, int row_threads = 0) : batch(row_batch), threads(row_threads) {}
  auto operator<=>(const GridRow&) const = default;
};

/// Rows are batches, columns CPUs.
struct Grid {
  std::vector<int> cpus;
  std::vector<GridRow> rows;
  std::map<std::pair<GridRow, int>, ScalingCell> cells;
  /// CPUs that a row's speed-ups are against: the fewest with a time. None in a row without any.
  std::map<GridRow, int> bases;

  const ScalingCell* at(const GridRow& row, int cpu) const;
  /// The cells of a row with a time, by CPUs.
  std::vector<const cells::Cell*> timed(const GridRow& row) const;
  bool empty() const { return cells.empty(); }
};

/// The cells of one backend on one kind of machine with one model and one value of each axis that
/// is neither CPUs nor batch.
struct Series {
  std::string name;  ///< "cpu"; with machine or model where others share the backend
  std::string backend;
  cells::CellTable about;  ///< without cells; its options are those of the series
  Grid strong, weak;
  cells::SeriesIdentity identity{};
  std::string beside{};  ///< for devices: the series of CPUs they are compared with, or empty
};

/// What a cell's accuracy of validation may be among all images like these (accuracy_interval);
/// nothing where it or the images are not known.
std::optional<Interval> validation_interval(const Series&, const cells::Cell&);

struct ScalingTable {
  std::vector<Series> series;        ///< CPUs first
  std::vector<std::string> remarks;  ///< on what was merged

  /// Whether there are cells with a global batch; else all are of weak scaling.
  bool has_strong() const;
  /// Calls `see` for every cell: strong grids first, row by row.
  void for_each(const std::function<void(const Series&, const ScalingCell&)>& see) const;
  /// Whether there is such a cell.
  bool any(const std::function<bool(const ScalingCell&)>& is_such) const;
};

/// Where a cell is in several tables, the better founded one stays (measured, scaled, simulated),
/// the later of equals, and there is a remark. Error(data) for more than 500 batches or CPU counts.
ScalingTable make_scaling_table(const std::vector<CellSource>&, const cells::Prices&);

/// How many times as fast `to` is as `from`, by the repeats of both (compare_times). The interval
/// is missing where one of them has one repeat. Both have a time.
TimeRatio gain_of(const cells::Cell& from, const cells::Cell& to);

/// The part of its time that a row's largest batch saves over the smallest, as the published table
/// has it: (t(128) - t(1024)) / t(128). Nothing where one of the two is missing.
struct BatchIncrease {
  std::size_t from = 0, to = 0;
  std::map<int, double> by_cpus;
  cells::CellStatus status = cells::CellStatus::measured;  ///< the least certain of them
};
/// "time saved by batch 1024 against batch 128 (%)": of what such a figure is, positive where the
/// larger batch takes less time.
std::string increase_text(std::size_t from, std::size_t to);
/// From 128 where there is such a row, else from the smallest; nothing with one row.
std::optional<BatchIncrease> batch_increase(const Grid&);

/// The curve of one cell. Borrows the table.
struct CellCurve {
  const Series* series;
  const ScalingCell* cell;
  Curve curve;
};

/// More lines than this cannot be told apart, and each is a file to read.
inline constexpr std::size_t kMostCurves = 300;

struct Curves {
  std::vector<CellCurve> shown;
  std::size_t left_out = 0;  ///< further cells with a run
};

/// Curves of the first kMostCurves cells whose runs have steps, each of the repeat whose time is
/// nearest to the cell's median.
Curves curves_of(const ScalingTable&);

}  // namespace cputrain::report
