#include "scaling/report/trainings/runs_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/report/forms/document.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

std::string accuracy_text(double accuracy) { return fmt::format("{:.4f}", accuracy); }

using Run = const RunRecord&;
using Table = DocumentTable&;
using Columns = std::vector<Column<RunRecord>>;

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

/// "2026-11-25 22:40", of a time as environment.json has it.
std::string started_text(const std::string& started) {
  if (started.empty()) return kNotKnown;
  std::string text = started.substr(0, 16);
  if (text.size() == 16 && text[10] == 'T') text[10] = ' ';
  return text;
}

/// A figure of the best epoch of a run.
Column<RunRecord> best_column(const char* head, Value (*figure)(const BestAccuracy&),
                              std::string (*text)(double)) {
  const auto entry = [figure, text](Run r, Table) {
    const auto best = r.best();
    return figure_entry(best ? figure(*best) : std::nullopt, text);
  };
  return {head, entry, false};
}

Value accuracy_of(const BestAccuracy& best) { return best.accuracy; }
Value epoch_of(const BestAccuracy& best) { return best.epoch; }
Value seconds_of(const BestAccuracy& best) { return best.seconds; }
std::string whole_text(double n) { return fmt::format("{:.0f}", n); }

/// The words of a choice that all runs share which say it; empty where they differ, or none does.
std::string shared_words(const Choice& choice, const std::vector<RunRecord>& runs) {
  std::string words;
  for (const RunRecord& run : runs) {
    const std::string own = choice.words(run);
    if (own.empty()) continue;  // a damaged run says nothing
    if (!words.empty() && own != words) return "";
    words = own;
  }
  return words;
}

/// What people look for, how good and how soon; what the runs chose differently; and the rest. A
/// window that is too narrow hides the end.
Columns columns_of(const RunList& list, const std::vector<Choice>& choices) {
  Columns columns{best_column("best validation accuracy", accuracy_of, accuracy_text),
                  best_column("in epoch", epoch_of, whole_text),
                  best_column("seconds to it", seconds_of, figure_text)};
  for (const Choice& choice : choices) {
    if (!shared_words(choice, list.runs).empty() || !is_known(choice, list.runs)) continue;
    columns.push_back({choice.head, [choice](Run run, Table) {
                         const std::string text = choice.text(run);
                         Entry entry{text.empty() ? kNotKnown : text};
                         if (choice.value) entry.value = choice.value(run);
                         return entry;
                       }});
  }
  const auto loss = [](Run r, Table) {
    return figure_entry(r.epochs.empty() ? std::nullopt : r.epochs.back().loss);
  };
  const auto cost = [&](Run r, Table) { return figure_entry(cost_of(r, list.prices)); };
  const auto started = [](Run r, Table) { return Entry{started_text(r.started)}; };
  const Columns others{
      {"loss", loss},
      {"validation loss", [](Run r, Table) { return figure_entry(r.val_loss()); }, false},
      {"images/s", rate_entry},
      {"seconds in all", total_entry},
      {"cost", cost, false},
      {"epochs", epochs_entry},
      {"outcome", outcome_entry},
      {"started", started}};
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
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
  DocumentTable table = table_of<RunRecord>(
      list.runs.size() == 1 ? "What it came to" : "Runs, the best validation accuracy first", "run",
      list.runs, &RunRecord::name, columns_of(list, choices));
  table.filterable = list.runs.size() > 1;
  return table;
}

/// "0.9120 (0.9050 to 0.9210)" of those that are known.
Entry spread_entry(const std::vector<const RunRecord*>& runs, const std::function<Value(Run)>& of,
                   std::string (*text)(double)) {
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

Entry seeds_entry(const Repeats& repeats, Table) {
  std::set<std::string> seeds;
  for (const RunRecord* run : repeats.runs)
    seeds.insert(run->seed ? std::to_string(*run->seed) : "?");
  return {first_few(std::vector<std::string>(seeds.begin(), seeds.end()), 5)};
}

Section repeats_section(const RunList& list) {
  const std::vector<Repeats> repeats = repeats_of(list.runs);
  if (repeats.empty()) return {};
  const auto spread = [](std::function<Value(Run)> of, std::string (*text)(double)) {
    return [of, text](const Repeats& r, Table) { return spread_entry(r.runs, of, text); };
  };
  const auto best = [](Value (*figure)(const BestAccuracy&)) {
    return [figure](Run r) {
      const auto found = r.best();
      return found ? figure(*found) : std::nullopt;
    };
  };
  const auto count = [](const Repeats& r, Table) {
    return figure_entry(static_cast<double>(r.runs.size()), whole_text);
  };
  const auto rate = [](Run r) { return r.images_per_second(); };
  const auto seconds = [](Run r) { return r.seconds; };
  return Section{
      .id = "same-configuration",
      .title = "The same configuration",
      .paragraphs =
          {"Repeats have the same flags, machine, ranks and threads; the seed may differ."},
      .tables = {
          table_of<Repeats>("Runs of one configuration: medians, and least to most",
                            "configuration", repeats, &Repeats::what,
                            {{"runs", count},
                             {"best validation accuracy", spread(best(accuracy_of), accuracy_text)},
                             {"seconds to it", spread(best(seconds_of), figure_text)},
                             {"images/s", spread(rate, figure_text)},
                             {"seconds in all", spread(seconds, figure_text)},
                             {"seeds", seeds_entry}})}};
}

Section runs_section(const RunList& list) {
  const auto choices = choices_of(list.runs);
  Section section{"runs", "Runs"};
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
        "Left out, since these folders hold sweeps, which have a report of their own: " +
        first_few(list.sweeps) + ".");
  }
  return section;
}

Section curves_section(const RunList& list) {
  const bool any = std::ranges::any_of(
      list.runs, [](const RunRecord& r) { return r.outcome != Outcome::no_figures; });
  if (!any) return {};
  Section section{.id = "curves", .title = "Curves", .plots = {"run-loss"}};
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
                    runs_headline(list)};
  document.card = runs_card(list);
  if (auto starved = starved_sentence(list)) document.headline.push_back(std::move(*starved));
  for (const auto section :
       {runs_section, evaluations_section, repeats_section, curves_section, time_section}) {
    document.add(section(list));
  }
  return document;
}

}  // namespace cputrain::report
