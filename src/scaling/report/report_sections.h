#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scaling/report/curves.h"
#include "scaling/report/document.h"
#include "scaling/report/reference_table.h"
#include "scaling/report/scaling_table.h"

/// The sections of a report. Each returns none where there are no figures for it.
namespace cputrain::report {

using MaybeSection = std::optional<Section>;

/// A section with these tables, none where they have no row.
MaybeSection section_of(std::string id, std::string title, std::vector<DocumentTable> tables);
inline MaybeSection section_of(std::string id, std::string title, DocumentTable table) {
  return section_of(std::move(id), std::move(title), std::vector{std::move(table)});
}

// what follows from times (grid_sections.cpp)
MaybeSection seconds_section(const ScalingTable&);
MaybeSection speed_up_section(const ScalingTable&);
MaybeSection efficiency_section(const ScalingTable&);
MaybeSection throughput_section(const ScalingTable&);
MaybeSection arithmetic_section(const ScalingTable&);
MaybeSection weak_section(const ScalingTable&);
MaybeSection memory_section(const ScalingTable&);
MaybeSection cost_section(const ScalingTable&, const cells::Prices&);
MaybeSection target_section(const ScalingTable&);

/// CPUs that are as quick as GPUs, and shares of a GPU's rates (gpus.cpp).
MaybeSection gpu_section(const ScalingTable&);

// cell by cell (cell_sections.cpp)
MaybeSection budget_section(const ScalingTable&);
MaybeSection limits_section(const ScalingTable&);
MaybeSection splits_section(const ScalingTable&);
MaybeSection spread_section(const ScalingTable&);

// accuracy, and whether CPUs or batch change it (accuracy_section.cpp)
MaybeSection accuracy_section(const ScalingTable&, const Curves&);
/// Against CPUs, with intervals over the images.
MaybeSection accuracy_by_cpus_section(const ScalingTable&);

// beside others (comparison_sections.cpp)
MaybeSection backends_section(const ScalingTable&);
MaybeSection reference_section(const ScalingTable&, const std::optional<ReferenceTable>&);
/// Serial part and work of published rows and of ours (serial_fit.cpp).
MaybeSection fit_section(const ScalingTable&, const std::optional<ReferenceTable>&);
MaybeSection conditions_section(const ScalingTable&, const std::vector<CellSource>&);

}  // namespace cputrain::report
