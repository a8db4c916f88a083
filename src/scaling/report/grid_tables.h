#pragma once

#include "scaling/report/forms/document.h"
#include "scaling/report/scaling_table.h"

/// Tables with batches down and CPUs across, one figure of every cell in each.
namespace cputrain::report {

/// The status that all cells with a time have; nothing where they differ or none has one.
std::optional<cells::CellStatus> shared_status(const ScalingTable&);
/// The mark of a status that all figures share, in a caption: ", all scaled"; empty without one.
std::string shared_text(const std::string& mark);
/// "" for measured, else the status: what goes beside a figure.
std::string mark_of(cells::CellStatus);
/// Why a cell has no time; never empty.
std::string reason_text(const cells::Cell&);
/// Its time, or "n/a" with a note; in the notes, too, what a reader should know of that time.
Entry seconds_entry(const cells::Cell&, DocumentTable&);
/// "256"; of ranks with several threads in weak scaling "32, 2 threads".
std::string row_text(const GridRow&);
/// "2 CPUs, batch 256", "2 CPUs, batch 32 per rank", "2 CPUs, batch 32 per rank, 2 threads".
std::string place_text(const cells::Cell&);
/// With the series' name where there are several.
std::string place_text(const ScalingTable&, const Series&, const cells::Cell&);
/// "CPU", or "GPU" of a series on devices, in the plural unless there is one.
std::string cpus_text(const std::string& backend, int count);

/// A part of 1 in percent, "93.1".
inline std::string percent_text(double part) { return decimals<1>(100 * part); }

/// A figure of a cell, nothing where it is not known.
struct GridFigure {
  std::string caption;  ///< with the unit
  std::function<std::optional<double>(const ScalingCell&)> value{};
  std::function<cells::CellStatus(const ScalingCell&)> status = [](const ScalingCell& c) {
    return c.cell.status;
  };
  std::function<std::string(double)> text = figure_text;
  /// A table even where every cell is n/a, notes on times that need one, and below global batches
  /// rows that say what the largest one saves.
  bool is_time = false;
  std::function<std::string(const ScalingCell&)> beside{};  ///< a mark of its own, or empty
  std::string missing{};  ///< where there is no figure, but that mark
  /// What stands there where there is no figure, but something to say; or empty.
  std::function<std::string(const ScalingCell&)> words{};

  /// Whether it has anything for this cell.
  bool knows(const ScalingCell& c) const {
    return value(c) || (beside && !beside(c).empty()) || (words && !words(c).empty());
  }
};

/// Strong or weak grids of all series beside each other, or a table each where that would be wide.
/// No table where no cell has the figure; a cell that has none for a reason notes it.
std::vector<DocumentTable> grid_tables(const ScalingTable&, Grid Series::*grid, const GridFigure&);

/// The tables of the strong grids, then those of the weak ones.
std::vector<DocumentTable> both_grids(const ScalingTable&, GridFigure);

}  // namespace cputrain::report
