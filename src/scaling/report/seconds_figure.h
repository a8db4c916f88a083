#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

/// The plot of seconds per epoch by CPUs as a file of its own, which gnuplot draws.
namespace cputrain::report {

/// What gnuplot is to do: 800 by 480 pixels, SVG, written to `output`. Colours are batches; points
/// are filled where they were measured and hollow where they were simulated. Empty where no cell of
/// a global batch has a time. Texts of hostile tables are texts in it and nothing else.
std::string gnuplot_script(const ScalingTable&, const std::optional<ReferenceTable>&,
                           const std::filesystem::path& output);

/// `file`: what was written; `remark`: why nothing was.
struct DrawnFigure {
  std::optional<std::filesystem::path> file;
  std::string remark;
};

/// Draws the figure to `file`, where gnuplot is in PATH. Never fails: the remark says why nothing
/// was drawn, and then no file of an earlier report stays there. Neither file nor remark where the
/// table has nothing to draw.
DrawnFigure draw_seconds(const std::filesystem::path& file, const ScalingTable&,
                         const std::optional<ReferenceTable>&);

}  // namespace cputrain::report
