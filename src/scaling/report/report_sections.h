#pragma once

#include "scaling/report/document.h"
#include "scaling/report/scaling_document.h"

/// The sections of a report.
namespace cputrain::report {

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
