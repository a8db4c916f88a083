#include "scaling/report/trainings/runs_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/statistics/median.h"
#include "core/text.h"
#include "scaling/report/grid_tables.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

std::string accuracy_text(double accuracy) { return fmt::format("{:.4f}", accuracy); }

/// A column of the table of runs.
struct Column {
  std::string head;
  std::function<Entry(const RunRecord&, DocumentTable&)> entry;
  bool always = true;  ///< else only where a run has it
};

/// Where files could not be read, some epochs may be missing.
Entry epochs_entry(const RunRecord& run, DocumentTable& table) {
  const int done = run.epochs.empty() ? 0 : run.epochs.back().epoch;
  Entry entry{std::to_string(done)};
  if (run.planned_epochs && *run.planned_epochs > done)
    entry.text += fmt::format(" of {}", *run.planned_epochs);
  entry.value = done;
  if (!run.troubles.empty()) entry.note = table.note(run.name + ": " + join(run.troubles, "; "));
  return entry;
}

Entry rate_entry(const RunRecord& run, DocumentTable& table) {
  Entry entry = figure_entry(run.images_per_second());
  if (run.includes_trials())
    entry.note =
        table.note("Of epochs that take longer: the first, and those that tried algorithms.");
  return entry;
}

Entry total_entry(const RunRecord& run, DocumentTable& table) {
  Entry entry = figure_entry(run.total_seconds());
  if (entry.value && !run.seconds)
    entry.note = table.note("Of the epochs that ended: the run has no summary.");
  return entry;
}

Entry outcome_entry(const RunRecord& run, DocumentTable&) {
  const std::string details = outcome_details(run);
  return {outcome_text(run), details.empty() ? "" : "(" + details + ")"};
}

/// What people look for: how good, and how soon.
std::vector<Column> accuracy_columns() {
  using Run = const RunRecord&;
  using Table = DocumentTable&;
  return {{"best validation accuracy",
           [](Run r, Table) {
             const auto best = r.best();
             return figure_entry(best ? Value(best->accuracy) : std::nullopt, accuracy_text);
           },
           false},
          {"in epoch",
           [](Run r, Table) {
             const auto best = r.best();
             return figure_entry(best ? Value(best->epoch) : std::nullopt,
                                 [](double epoch) { return fmt::format("{:.0f}", epoch); });
           },
           false},
          {"seconds to it",
           [](Run r, Table) {
             const auto best = r.best();
             return figure_entry(best ? best->seconds : std::nullopt);
           },
           false}};
}

std::vector<Column> other_columns(const cells::Prices& prices) {
  using Run = const RunRecord&;
  using Table = DocumentTable&;
  return {{"loss",
           [](Run r, Table) {
             return figure_entry(r.epochs.empty() ? std::nullopt : r.epochs.back().loss);
           }},
          {"validation loss", [](Run r, Table) { return figure_entry(r.val_loss()); }, false},
          {"images/s", rate_entry},
          {"seconds in all", total_entry},
          {"cost", [prices](Run r, Table) { return figure_entry(cost_of(r, prices)); }, false},
          {"epochs", epochs_entry},
          {"outcome", outcome_entry}};
}

/// What the runs chose differently.
std::vector<Column> choice_columns(const std::vector<Choice>& choices,
                                   const std::vector<RunRecord>& runs) {
  std::vector<Column> columns;
  for (const Choice& choice : choices) {
    if (!shared_words(choice, runs).empty() || !is_known(choice, runs)) continue;
    columns.push_back({choice.head, [choice](const RunRecord& run, DocumentTable&) {
                         const std::string text = choice.text(run);
                         Entry entry{text.empty() ? kNotKnown : text};
                         if (choice.value) entry.value = choice.value(run);
                         return entry;
                       }});
  }
  return columns;
}

/// Whether a run has an entry in it that is not empty.
bool is_known(const Column& column, const std::vector<RunRecord>& runs) {
  DocumentTable scratch;
  return std::ranges::any_of(
      runs, [&](const RunRecord& r) { return column.entry(r, scratch).value.has_value(); });
}

/// "2026-11-25 22:40", of a time as environment.json has it.
std::string started_text(const std::string& started) {
  if (started.empty()) return kNotKnown;
  std::string text = started.substr(0, 16);
  if (text.size() == 16 && text[10] == 'T') text[10] = ' ';
  return text;
}

/// "All 3 runs: model dogcat, data photos, 2 ranks x 1 thread."
std::string shared_sentence(const RunList& list, const std::vector<Choice>& choices) {
  std::vector<std::string> parts;
  for (const Choice& choice : choices) {
    std::string words = shared_words(choice, list.runs);
    if (!words.empty()) parts.push_back(std::move(words));
  }
  if (parts.empty()) return "";
  const std::size_t n = list.runs.size();
  const auto unread = static_cast<std::size_t>(std::ranges::count_if(
      list.runs, [](const RunRecord& r) { return r.model.empty() || !r.ranks; }));
  const std::string whose = n == 1        ? "This run"
                            : unread == 0 ? fmt::format("All {} runs", n)
                                          : "All runs whose files say it";
  return fmt::format("{}: {}.", whose, join(parts, ", "));
}

DocumentTable runs_table(const RunList& list, const std::vector<Choice>& choices) {
  DocumentTable table{
      list.runs.size() == 1 ? "What it came to" : "Runs, the best validation accuracy first",
      "run",
      {},
      {},
      {},
      {}};
  std::vector<Column> columns;
  // Choices stand beside what came of them: a window that is too narrow hides the end.
  for (const auto& part :
       {accuracy_columns(), choice_columns(choices, list.runs), other_columns(list.prices)}) {
    std::ranges::copy_if(part, std::back_inserter(columns), [&](const Column& column) {
      return column.always || is_known(column, list.runs);
    });
  }
  columns.push_back({"started", [](const RunRecord& r, DocumentTable&) {
                       return Entry{started_text(r.started)};
                     }});
  for (const Column& column : columns) table.head.push_back(column.head);
  for (const RunRecord& run : list.runs) {
    Row row{run.name, {}};
    for (const Column& column : columns) row.entries.push_back(column.entry(run, table));
    table.rows.push_back(std::move(row));
  }
  table.sortable = table.filterable = list.runs.size() > 1;
  return table;
}

/// "0.9120 (0.9050 to 0.9210)" of those that are known.
Entry spread_entry(const std::vector<const RunRecord*>& runs,
                   const std::function<Value(const RunRecord&)>& of,
                   const std::function<std::string(double)>& text = figure_text) {
  std::vector<double> values;
  for (const RunRecord* run : runs) {
    if (const Value value = of(*run)) values.push_back(*value);
  }
  if (values.empty()) return {kNotKnown};
  const auto [least, most] = std::ranges::minmax(values);
  const double middle = median(values);
  Entry entry{text(middle)};
  entry.value = middle;
  if (values.size() > 1) entry.text += fmt::format(" ({} to {})", text(least), text(most));
  if (values.size() < runs.size()) entry.text += fmt::format(", of {}", values.size());
  return entry;
}

std::optional<Section> repeats_section(const RunList& list) {
  const std::vector<Repeats> repeats = repeats_of(list.runs);
  if (repeats.empty()) return std::nullopt;
  DocumentTable table{
      "Runs of one configuration: medians, and least to most",
      "configuration",
      {},
      {"runs", "best validation accuracy", "seconds to it", "images/s", "seconds in all", "seeds"},
      {},
      {}};
  for (const auto& [runs, what] : repeats) {
    Row row{what, {}};
    row.entries.push_back(figure_entry(static_cast<double>(runs.size()),
                                       [](double n) { return fmt::format("{:.0f}", n); }));
    const auto best = [](const RunRecord& r) {
      const auto found = r.best();
      return found ? Value(found->accuracy) : std::nullopt;
    };
    const auto seconds_to_best = [](const RunRecord& r) {
      const auto found = r.best();
      return found ? found->seconds : std::nullopt;
    };
    row.entries.push_back(spread_entry(runs, best, accuracy_text));
    row.entries.push_back(spread_entry(runs, seconds_to_best));
    row.entries.push_back(
        spread_entry(runs, [](const RunRecord& r) { return r.images_per_second(); }));
    row.entries.push_back(spread_entry(runs, [](const RunRecord& r) { return r.seconds; }));
    std::vector<std::string> seeds;
    for (const RunRecord* run : runs) seeds.push_back(run->seed ? std::to_string(*run->seed) : "?");
    std::ranges::sort(seeds);
    seeds.erase(std::unique(seeds.begin(), seeds.end()), seeds.end());
    row.entries.push_back({first_few(seeds, 5)});
    table.rows.push_back(std::move(row));
  }
  table.sortable = table.rows.size() > 1;
  Section section{"same-configuration", "The same configuration", {}, {}, {}, {}};
  section.paragraphs.push_back(
      "Repeats have the same flags, machine, ranks and threads; the seed may differ.");
  section.tables.push_back(std::move(table));
  return section;
}

Section runs_section(const RunList& list) {
  const auto choices = choices_of(list.runs);
  Section section{"runs", "Runs", {}, {}, {}, {}};
  if (const std::string shared = shared_sentence(list, choices); !shared.empty())
    section.paragraphs.push_back(shared);
  section.tables.push_back(runs_table(list, choices));
  if (std::ranges::none_of(list.runs, [](const RunRecord& r) { return r.best().has_value(); }))
    section.remarks.push_back("No run has a validation accuracy.");
  else
    section.remarks.push_back(
        "Seconds to the best accuracy are of training until the end of that epoch, without "
        "evaluations.");
  if (!list.left_out.empty()) {
    section.remarks.push_back(
        "Left out, since these folders hold no run: " + first_few(list.left_out) + ".");
  }
  if (!list.sweeps.empty()) {
    section.remarks.push_back(
        "Left out, since these folders hold sweeps, which have a report of "
        "their own: " +
        first_few(list.sweeps) + ".");
  }
  return section;
}

std::optional<Section> curves_section(const RunList& list) {
  const bool any = std::ranges::any_of(
      list.runs, [](const RunRecord& r) { return r.outcome != Outcome::no_figures; });
  if (!any) return std::nullopt;
  Section section{"curves", "Curves", {}, {"run-loss"}, {}, {}};
  const bool validated =
      std::ranges::any_of(list.runs, [](const RunRecord& r) { return r.best().has_value(); });
  if (validated) section.plots.push_back("run-accuracy");
  if (list.runs.size() > kMostRunCurves) {
    section.remarks.push_back(fmt::format("Curves are those of the first {} runs of {}.",
                                          kMostRunCurves, list.runs.size()));
  }
  return section;
}

}  // namespace

Document runs_document(const RunList& list) {
  const std::size_t n = list.runs.size();
  Document document{n == 1 ? "Training " + list.runs.front().name : fmt::format("{} trainings", n),
                    runs_headline(list),
                    {},
                    {}};
  document.card = runs_card(list);
  if (auto starved = starved_sentence(list)) document.headline.push_back(std::move(*starved));
  document.sections.push_back(runs_section(list));
  if (auto evaluations = evaluations_section(list))
    document.sections.push_back(std::move(*evaluations));
  if (auto repeats = repeats_section(list)) document.sections.push_back(std::move(*repeats));
  if (auto curves = curves_section(list)) document.sections.push_back(std::move(*curves));
  if (auto time = time_section(list)) document.sections.push_back(std::move(*time));
  return document;
}

}  // namespace cputrain::report
