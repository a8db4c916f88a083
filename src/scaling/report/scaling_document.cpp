#include "scaling/report/scaling_document.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/gpus/beside_cpus.h"
#include "scaling/report/headline.h"
#include "scaling/report/report_sections.h"
#include "scaling/report/scaling_card.h"

namespace cputrain::report {
namespace {

std::string document_title(const ScalingTable& table) {
  if (table.series.empty()) return "Seconds per epoch";
  const cells::CellTable& about = table.series.front().about;
  std::string title = "Seconds per epoch by CPUs and batch size";
  if (!about.model.empty()) title += ": " + about.model;
  if (about.image_size > 0) title += fmt::format(" at {0}x{0}", about.image_size);
  return title;
}

/// "AMD EPYC, 2 cores; 2026-11-25; commit abc1234, Release": what the figures of a source are of.
std::string origin_of(const cells::CellTable& t) {
  const cells::CellMachine& m = t.machine;
  std::vector<std::string> parts;
  const auto add = [&](const std::string& text) {
    if (!text.empty()) parts.push_back(text);
  };
  const std::string cores =
      m.cores > 0 ? fmt::format(", {} core{}", m.cores, m.cores == 1 ? "" : "s") : "";
  add(!m.platform.empty() ? "simulated platform " + m.platform
                          : (m.cpu.empty() ? "machine not said" : m.cpu + cores));
  add(t.date);
  add(t.commit);
  if (t.date.empty() && t.commit.empty()) add("date and commit not recorded");
  if (!t.costs.empty()) add("costs: " + t.costs);
  return join(parts, "; ");
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
  Document document{document_title(table), headlines(table), {}, {}};
  for (std::string& text : equal_sentences(table)) document.headline.push_back(std::move(text));
  document.card = scaling_card(table, sources);
  for (const CellSource& source : sources) {
    const std::string whose = sources.size() > 1 ? source.name + ": " : "";
    document.summary.push_back(whose + origin_of(source.table) + ".");
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
  for (MaybeSection section : {seconds_section(table),
                               speed_up_section(table),
                               efficiency_section(table),
                               throughput_section(table),
                               gpu_section(table),
                               arithmetic_section(table),
                               budget_section(table),
                               limits_section(table),
                               splits_section(table),
                               accuracy_section(table, curves),
                               accuracy_by_cpus_section(table),
                               target_section(table),
                               weak_section(table),
                               memory_section(table),
                               cost_section(table, prices),
                               backends_section(table),
                               reference_section(table, reference),
                               fit_section(table, reference),
                               spread_section(table),
                               conditions_section(table, sources)}) {
    if (section) document.sections.push_back(std::move(*section));
  }
  if (!table.has_strong()) {  // what comes first is what people see first
    std::stable_partition(document.sections.begin(), document.sections.end(),
                          [](const Section& s) { return s.id == "weak"; });
  }
  return document;
}

}  // namespace cputrain::report
