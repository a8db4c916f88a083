// What `eval` found for the weights of the runs.

#include <fmt/format.h>

#include "core/text.h"
#include "core/statistics.h"
#include "report/evaluation/evaluation_page.h"
#include "report/grid_tables.h"
#include "report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

std::string interval_text(const RunEvaluation& evaluation) {
  const Interval range = accuracy_interval(*evaluation.accuracy, evaluation.images);
  return fmt::format("{:.4f} to {:.4f}", range.low, range.high);
}

std::string or_dash(const std::string& text) { return text.empty() ? kNotKnown : text; }

std::string images_text(const RunEvaluation& evaluation) {
  return with_commas(static_cast<std::uint64_t>(evaluation.images));
}

Row evaluation_row(const RunRecord& run, const RunEvaluation& evaluation, DocumentTable& table) {
  const auto [accuracy, loss] = std::pair(evaluation.accuracy, evaluation.loss);
  Row row{run.name,
          {figure_entry(accuracy, [](double a) { return fmt::format("{:.4f}", a); }),
           {accuracy ? interval_text(evaluation) : kNotKnown},
           figure_entry(evaluation.images, [&](double) { return images_text(evaluation); }),
           {or_dash(without_folders(evaluation.data))},
           {evaluation.part.empty() ? kNotKnown : part_text(evaluation.part)},
           {or_dash(evaluation.weights)},
           figure_entry(loss),
           {or_dash(evaluation.date)}}};
  std::vector<std::string> notes;
  if (!evaluation.doubt.empty()) notes.push_back(doubt_sentence(evaluation.doubt));
  if (!evaluation.command.empty()) notes.push_back("Command: " + evaluation.command);
  if (!notes.empty()) row.entries.front().note = table.note(join(notes, " "));
  return row;
}

}  // namespace

std::string evaluation_text(const RunEvaluation& evaluation) {
  if (!evaluation.accuracy) return "";
  return fmt::format("{:.4f} ({}) on {} images of {} ({}){}", *evaluation.accuracy,
                     interval_text(evaluation), images_text(evaluation),
                     or_dash(without_folders(evaluation.data)), part_text(evaluation.part),
                     evaluation.doubt.empty() ? "" : ", which training may have learnt from");
}

std::optional<Section> evaluations_section(const RunList& list) {
  DocumentTable table{
      "Accuracy of saved weights, and what it may be among all images like these (95 %)",
      "run",
      {},
      {"accuracy", "interval", "images", "data", "part", "weights", "loss", "date"},
      {},
      {}};
  for (const RunRecord& run : list.runs) {
    for (const RunEvaluation& evaluation : run.evaluations)
      table.rows.push_back(evaluation_row(run, evaluation, table));
  }
  if (table.rows.empty()) return std::nullopt;
  table.sortable = table.rows.size() > 1;
  Section section{"evaluations", "Evaluations", {}, {}, {}, {}};
  section.tables.push_back(std::move(table));
  section.remarks.push_back(
      "These are the results of eval at its date. Weights that were written later may give "
      "others.");
  return section;
}

}  // namespace cputrain::report
