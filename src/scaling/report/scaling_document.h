#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scaling/report/forms/document.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

/// A report of sweeps and simulations: its document, which is made of sections, and its files.
namespace cputrain::report {

/// What a document is made from. Borrows all of it.
struct ScalingFacts {
  const ScalingTable& table;
  const std::vector<CellSource>& sources;
  const std::optional<ReferenceTable>& reference;
  const cells::Prices& prices;
  const Curves& curves;
};

/// Everything that a sweep's report says, in sections; those without figures are left out.
Document scaling_document(const ScalingFacts&);

/// Where more CPUs stop paying, in one row of a grid. A step from one number of CPUs to the next
/// pays where it brings at least half of the gain that its CPUs promise (a doubling: 1.5 times),
/// and where that gain is beyond the spread of the repeats.
struct Knee {
  int cpus = 0;        ///< the largest number to which a step paid; 0 where none did
  int next = 0;        ///< the number after it that has a time; 0 where that was the last
  double gain = 1;     ///< the step's to `next`, by geometric means
  bool open = false;   ///< the repeats leave open whether the step to `next` pays
  bool known = false;  ///< false where some step has too few repeats, or there is no step
};
Knee knee_of(const Grid&, const GridRow&);

/// Two sentences on each series that has a time, with the name of the series where there are
/// several: the fastest cell and its speed-up; the knee at its batch and what limits that cell.
std::vector<std::string> headlines(const ScalingTable&);

/// CSV (RFC 4180: commas, CRLF, a line of names). A line for every split of every cell, `quickest`
/// 1 where the other tables have it; empty where a figure is not known.
std::string table_csv(const ScalingTable&, const std::optional<ReferenceTable>&);

/// {"version":1,"series":[...],"cells":[...],"reference":...}: cells as in cells.json, of the
/// quickest split, with what follows from their times, and all splits.
nlohmann::ordered_json table_json(const ScalingTable&, const std::optional<ReferenceTable>&);

/// Seconds per epoch by CPUs as an SVG 800 pixels wide, which papers and pages without scripts
/// take. Colours are batches; points are filled where they were measured, hollow where they were
/// simulated, and crosses where they were published. A level line leads from the fewest devices
/// over the axis of CPUs. Of more than sixteen series the others are named. Empty where no cell of
/// a global batch has a time.
std::string seconds_svg(const ScalingTable&, const std::optional<ReferenceTable>&);

/// "63.1 CPUs of cpu (58.2 to 70.1)", which are as quick as the cell; empty where it stands beside
/// none.
std::string equal_text(const Series&, const ScalingCell&);
/// For each series of devices that stands beside CPUs: "One NVIDIA H100 80GB HBM3 (cuda tf32) is as
/// quick as 63.1 CPUs of cpu at batch 128 (58.2 to 70.1), more than 96 at batch 1024; ranges are
/// those of the repeats; scaled.", of the fewest GPUs.
std::vector<std::string> equal_sentences(const ScalingTable&);

/// All CPUs and backends that a table was measured on: "AuthenticAMD, family 25, model 17; avx2;
/// L2 1024 KiB", "cpu 13, cuda 3"; "not recorded" as of older tables; empty of a simulation.
std::string processors_text(const cells::CellTable&);
std::string kernels_text(const cells::CellTable&);

/// The section as it is, or an empty one where its tables have no row.
Section with_tables(Section);

/// Makes a section; an empty one where there are no figures for it.
using SectionMaker = Section(const ScalingFacts&);

// what follows from times (grid_sections.cpp)
SectionMaker seconds_section, speed_up_section, efficiency_section, throughput_section,
    arithmetic_section, weak_section, memory_section, cost_section, target_section;
// CPUs that are as quick as GPUs, and shares of a GPU's rates (gpus.cpp)
SectionMaker gpu_section;
// cell by cell (cell_sections.cpp)
SectionMaker budget_section, limits_section, splits_section, spread_section;
// accuracy, and whether CPUs or batch change it (accuracy_section.cpp); against CPUs, with
// intervals over the images
SectionMaker accuracy_section, accuracy_by_cpus_section;
// beside others (comparison_sections.cpp); serial part and work of published rows and of ours
// (serial_fit.cpp); where all of it is from
SectionMaker backends_section, reference_section, fit_section, conditions_section;

}  // namespace cputrain::report
