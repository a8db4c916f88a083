#include "report/scaling_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "cells/explanation.h"
#include "core/text.h"
#include "report/grid_tables.h"
#include "report/report_sections.h"

namespace cputrain::report {
namespace {

std::string title_of(const ScalingTable& table) {
  if (table.series.empty()) return "Seconds per epoch";
  const cells::CellTable& about = table.series.front().about;
  std::string title = "Seconds per epoch by CPUs and batch size";
  if (!about.model.empty()) title += ": " + about.model;
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

/// "cpu: from 260 s on 1 CPU to 97.3 s on 2 CPUs, batch 1024 (2.67 times)".
std::string span_of(const Series& series) {
  const ScalingCell *slowest = nullptr, *quickest = nullptr;
  const bool weak = series.strong.empty();
  for (const auto& [where, cell] : weak ? series.weak.cells : series.strong.cells) {
    if (!cell.speed_up) continue;
    const double seconds = *cell.cell.seconds_per_epoch;
    if (!slowest || seconds > *slowest->cell.seconds_per_epoch) slowest = &cell;
    if (!quickest || seconds < *quickest->cell.seconds_per_epoch) quickest = &cell;
  }
  if (!quickest) return series.name + ": no cell has a time.";
  const auto place = [](const ScalingCell& c) {
    const std::string mark = mark_of(c.cell.status);
    return fmt::format("{} s{} ({})", figure_text(*c.cell.seconds_per_epoch),
                       mark.empty() ? "" : " " + mark, place_text(c.cell));
  };
  if (quickest == slowest) return fmt::format("{}: {} an epoch.", series.name, place(*quickest));
  return fmt::format("{}: {} an epoch at the slowest, {} at the quickest.", series.name,
                     place(*slowest), place(*quickest));
}

/// How many figures nobody should take for true as they are.
std::string suspects_text(const ScalingTable& table) {
  int count = 0;
  table.for_each([&](const Series&, const ScalingCell& c) { count += c.suspect ? 1 : 0; });
  if (count == 0) return "";
  return fmt::format("Suspect: {} speed-up{} more than {} times what the CPUs explain.", count,
                     count == 1 ? " is" : "s are", cells::kMostSpeedUp);
}

}  // namespace

Document scaling_document(const ScalingFacts& facts) {
  const auto& [table, sources, reference, prices, curves] = facts;
  Document document{title_of(table), {}, {}};
  for (const Series& series : table.series) {
    document.summary.push_back(span_of(series));
  }
  for (const CellSource& source : sources) {
    const std::string whose = sources.size() > 1 ? source.name + ": " : "";
    for (const std::string& remark : cells::remarks(source.table)) {
      document.summary.push_back(whose + remark + ".");
    }
  }
  if (const std::string suspects = suspects_text(table); !suspects.empty()) {
    document.summary.push_back(suspects);
  }
  for (MaybeSection section :
       {seconds_section(table), speed_up_section(table), efficiency_section(table),
        throughput_section(table), arithmetic_section(table), budget_section(table),
        limits_section(table), splits_section(table), accuracy_section(table, curves),
        target_section(table), weak_section(table), cost_section(table, prices),
        backends_section(table), reference_section(table, reference), fit_section(table, reference),
        spread_section(table), conditions_section(table, sources)}) {
    if (section) document.sections.push_back(std::move(*section));
  }
  if (!table.has_strong()) {  // what comes first is what people see first
    std::ranges::stable_partition(document.sections,
                                  [](const Section& s) { return s.id == "weak"; });
  }
  return document;
}

}  // namespace cputrain::report
