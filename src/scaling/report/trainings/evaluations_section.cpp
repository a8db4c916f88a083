// What `eval` found for the weights of the runs.

#include <fmt/format.h>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/report/evaluation/evaluation_page.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/trainings/runs_document.h"

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

/// A run with one of its evaluations.
struct Evaluated {
  const RunRecord* run;
  const RunEvaluation* what;
};

Entry accuracy_entry(const Evaluated& e, DocumentTable& table) {
  Entry entry = figure_entry(e.what->accuracy, [](double a) { return fmt::format("{:.4f}", a); });
  std::vector<std::string> notes;
  if (!e.what->doubt.empty()) notes.push_back(doubt_sentence(e.what->doubt));
  if (!e.what->command.empty()) notes.push_back("Command: " + e.what->command);
  if (!notes.empty()) entry.note = table.note(join(notes, " "));
  return entry;
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
  using E = const Evaluated&;
  using T = DocumentTable&;
  std::vector<Evaluated> all;
  for (const RunRecord& run : list.runs) {
    for (const RunEvaluation& one : run.evaluations) all.push_back({&run, &one});
  }
  if (all.empty()) return std::nullopt;
  const auto text = [](auto of) { return [of](E e, T) { return Entry{or_dash(of(*e.what))}; }; };
  const auto images = [](E e, T) {
    return figure_entry(e.what->images, [&](double) { return images_text(*e.what); });
  };
  const auto interval = [](E e, T) {
    return Entry{e.what->accuracy ? interval_text(*e.what) : kNotKnown};
  };
  const auto part = [](const RunEvaluation& e) { return e.part.empty() ? "" : part_text(e.part); };
  return Section{
      .id = "evaluations",
      .title = "Evaluations",
      .tables = {table_of<Evaluated>(
          "Accuracy of saved weights, and what it may be among all images like these (95 %)", "run",
          all, [](E e) { return e.run->name; },
          {{"accuracy", accuracy_entry},
           {"interval", interval},
           {"images", images},
           {"data", text([](const RunEvaluation& e) { return without_folders(e.data); })},
           {"part", text(part)},
           {"weights", text([](const RunEvaluation& e) { return e.weights; })},
           {"loss", [](E e, T) { return figure_entry(e.what->loss); }},
           {"date", text([](const RunEvaluation& e) { return e.date; })}})},
      .remarks = {"These are the results of eval at its date. Weights that were written later may "
                  "give others."}};
}

}  // namespace cputrain::report
