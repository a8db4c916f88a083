// Accuracy of validation against CPUs, with intervals over the images: whether it stays constant.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "scaling/report/evaluation/accuracy_interval.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/report_sections.h"

namespace cputrain::report {

namespace {

using Answers = std::vector<const cells::Cell*>;

Entry accuracy_entry(const Series& series, const cells::Cell& cell) {
  const auto interval = validation_interval(series, cell);
  const std::string range =
      interval ? fmt::format(" ({:.4f} to {:.4f})", interval->low, interval->high) : "";
  return {fmt::format("{:.4f} on {}{}", *cell.val_accuracy, cell.cpus, range), "", 0,
          *cell.val_accuracy};
}

void add_rows(DocumentTable& rows, const ScalingTable& table, const Series& series) {
  std::map<GridRow, Answers> batches;
  for (const auto& [where, place] : series.strong.cells) {
    if (place.cell.val_accuracy) batches[where.first].push_back(&place.cell);
  }
  for (const auto& [batch, answers] : batches) {
    const auto [low, high] = std::ranges::minmax_element(
        answers, {}, [](const cells::Cell* cell) { return *cell->val_accuracy; });
    const std::string whose = table.series.size() > 1 ? series.name + ", " : "";
    rows.rows.push_back({whose + "batch " + row_text(batch),
                         {{std::to_string(answers.size())},
                          accuracy_entry(series, **low),
                          accuracy_entry(series, **high)},
                         false});
  }
}

}  // namespace

MaybeSection accuracy_by_cpus_section(const ScalingTable& table) {
  DocumentTable rows;
  rows.caption = "Accuracy of validation over numbers of CPUs (part of 1)";
  rows.corner = "batch";
  rows.head = {"cells", "lowest, on CPUs", "highest, on CPUs"};
  for (const Series& series : table.series) add_rows(rows, table, series);
  if (rows.rows.empty()) return std::nullopt;
  return Section{
      "constancy",
      "Accuracy by CPUs",
      {},
      {"accuracy-by-cpus"},
      {std::move(rows)},
      {"In brackets: 95 % over the validation images (Wilson), as if they were drawn at random. "
       "Trainings of one seed see the same images in the same order on any number of CPUs, so what "
       "differs is rounding and what it grew to.",
       "An epoch may have been chosen by these images (--save-best, --early-stopping, a target): "
       "eval on images of a test part has no such choice in it."}};
}

}  // namespace cputrain::report
