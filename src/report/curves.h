#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/scaling_table.h"

namespace cputrain {

/// Loss and accuracy of a run's steps, as metrics.jsonl has them.
struct Curve {
  std::vector<double> images, loss, accuracy;  ///< images seen until then; accuracy as a part of 1
};

/// Reads the step lines of a metrics.jsonl, which may be hostile or cut off: lines that are no such
/// objects are left out. At most `most` points remain, evenly spread. Empty where there is no file.
Curve read_curve(const std::filesystem::path& metrics, std::size_t most = 300);

/// Of the repeat whose time is nearest to the cell's median; nothing where no run has steps.
std::optional<Curve> curve_of(const ScalingCell&);

/// The curve of one cell. Borrows the table.
struct CellCurve {
  const Series* series;
  const ScalingCell* cell;
  Curve curve;
};

/// Of every cell whose runs have steps.
std::vector<CellCurve> curves_of(const ScalingTable&);

}  // namespace cputrain
