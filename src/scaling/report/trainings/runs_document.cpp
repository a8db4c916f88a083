#include "scaling/report/trainings/runs_document.h"

#include <set>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/trainings/evaluation_page.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

using Run = const RunRecord&;
using Table = DocumentTable&;
using Columns = std::vector<Column<RunRecord>>;

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
Columns chosen_columns(const RunList& list, const std::vector<Choice>& choices) {
  const std::vector<RunColumn> all = run_columns(list);
  Columns columns;
  const auto add = [&](const char* key) {
    add_all(columns, std::ranges::find(all, key, &RunColumn::key)->tables);
  };
  add("best");
  for (const Choice& choice : choices) {
    const bool silent =
        std::ranges::all_of(list.runs, [&](Run run) { return choice.text(run).empty(); });
    if (silent || !shared_words(choice, list.runs).empty()) continue;
    columns.push_back({choice.head, [choice](Run run, Table) {
                         const std::string text = choice.text(run);
                         Entry entry{text.empty() ? kNotKnown : text};
                         if (choice.value) entry.value = choice.value(run);
                         return entry;
                       }});
  }
  for (const char* key : {"loss", "val_loss", "images_per_second", "seconds", "cost", "epochs",
                          "outcome", "started"}) {
    add(key);
  }
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
      list.runs, &RunRecord::name, chosen_columns(list, choices));
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
  const auto accuracy = [](Run r) { return r.best() ? Value(r.best()->accuracy) : std::nullopt; };
  const auto seconds_to_it = [](Run r) { return r.best() ? r.best()->seconds : std::nullopt; };
  const auto count = [](const Repeats& r, Table) {
    return figure_entry(static_cast<double>(r.runs.size()), decimals<0>);
  };
  const auto rate = [](Run r) { return r.images_per_second(); };
  const auto seconds = [](Run r) { return r.seconds; };
  return Section{
      .id = "same-configuration",
      .title = "The same configuration",
      .paragraphs =
          {"Repeats have the same flags, machine, ranks and threads; the seed may differ."},
      .tables = {table_of<Repeats>("Runs of one configuration: medians, and least to most",
                                   "configuration", repeats, &Repeats::what,
                                   {{"runs", count},
                                    {"best validation accuracy", spread(accuracy, decimals<4>)},
                                    {"seconds to it", spread(seconds_to_it, figure_text)},
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

// What `eval` found for the weights of the runs.

std::string or_dash(const std::string& text) { return text.empty() ? kNotKnown : text; }

std::string images_text(const training::EvaluationFacts& evaluation) {
  return with_commas(static_cast<std::uint64_t>(evaluation.images));
}

/// A run with one of its evaluations.
struct Evaluated {
  const RunRecord* run;
  const training::EvaluationFacts* what;
};

Entry accuracy_entry(const Evaluated& e, DocumentTable& table) {
  Entry entry = figure_entry(e.what->accuracy, decimals<4>);
  std::vector<std::string> notes;
  if (!e.what->doubt.empty()) notes.push_back(doubt_sentence(e.what->doubt));
  if (!e.what->command.empty()) notes.push_back("Command: " + e.what->command);
  if (!notes.empty()) entry.note = table.note(join(notes, " "));
  return entry;
}

/// Empty where no run has an evaluation.
Section evaluations_section(const RunList& list) {
  using E = const Evaluated&;
  using T = DocumentTable&;
  std::vector<Evaluated> all;
  for (const RunRecord& run : list.runs) {
    for (const training::EvaluationFacts& one : run.evaluations) all.push_back({&run, &one});
  }
  if (all.empty()) return {};
  const auto text = [](auto of) { return [of](E e, T) { return Entry{or_dash(of(*e.what))}; }; };
  const auto images = [](E e, T) {
    return figure_entry(e.what->images, [&](double) { return images_text(*e.what); });
  };
  const auto interval = [](E e, T) {
    return Entry{e.what->accuracy ? interval_text(*e.what->accuracy, e.what->images) : kNotKnown};
  };
  const auto part = [](const training::EvaluationFacts& e) {
    return e.part.empty() ? "" : part_text(e.part);
  };
  return Section{
      .id = "evaluations",
      .title = "Evaluations",
      .tables = {table_of<Evaluated>(
          "Accuracy of saved weights, and what it may be among all images like these (95 %)", "run",
          all, [](E e) { return e.run->name; },
          {{"accuracy", accuracy_entry},
           {"interval", interval},
           {"images", images},
           {"data",
            text([](const training::EvaluationFacts& e) { return without_folders(e.data); })},
           {"part", text(part)},
           {"weights", text([](const training::EvaluationFacts& e) {
              return e.looks.empty() ? e.weights : e.weights + ", --tta " + e.looks;
            })},
           {"loss", [](E e, T) { return figure_entry(e.what->finite_loss()); }},
           {"date", text([](const training::EvaluationFacts& e) { return e.date; })}})},
      .remarks = {"These are the results of eval at its date. Weights that were written later may "
                  "give others."}};
}

// Where the time went, and what trainings were starved of.

constexpr std::size_t kMostRemarks = 5;

Entry share_entry(std::optional<double> share) {
  if (share) *share *= 100;
  return figure_entry(share, decimals<1>);
}

/// With its name where there are several.
std::string said_of(const RunList& list, const RunRecord& run, const cells::LostTime& lost) {
  return (list.runs.size() > 1 ? run.name + ": " : "") + lost.sentence;
}

/// Trainings that lost anything.
DocumentTable lost_table(const RunList& list) {
  using R = const RunRecord&;
  using T = DocumentTable&;
  std::vector<RunRecord> runs;
  std::ranges::copy_if(list.runs, std::back_inserter(runs), [](R r) { return r.lost.any(); });
  const auto seconds = [](runfiles::LostSeconds::Loss runfiles::LostSeconds::*loss) {
    return [loss](R r, T) { return figure_entry((r.lost.*loss).seconds, decimals<1>); };
  };
  const auto restarts = [](R r, T) { return figure_entry(r.lost.restarts.times, decimals<0>); };
  return table_of<RunRecord>(
      "Seconds that were lost: from a checkpoint to the restart that goes on from it; steps that "
      "waited for checkpoints since the last start; ranks that waited for the last one; stalls "
      "that came to an end",
      "run", runs, &RunRecord::name,
      {{"restarts", restarts},
       {"lost to them", seconds(&runfiles::LostSeconds::restarts)},
       {"checkpoints", seconds(&runfiles::LostSeconds::checkpoints)},
       {"stragglers", seconds(&runfiles::LostSeconds::stragglers)},
       {"stalls", seconds(&runfiles::LostSeconds::stalls)}});
}

std::vector<cells::LostTime> lost_time_of(const RunRecord& run) {
  const runfiles::EpochLine time = run.time();
  return cells::lost_time(*time.budget, time.seconds, time.taken.stolen, time.taken.cpu_wait);
}

/// What a run was starved of most, and what to try.
std::optional<std::string> starved_sentence(const RunList& list) {
  const RunRecord* whose = nullptr;
  std::optional<cells::LostTime> most;
  for (const RunRecord& run : list.runs) {
    for (const cells::LostTime& lost : lost_time_of(run)) {
      if (most && lost.share <= most->share) continue;
      most = lost;
      whose = &run;
    }
  }
  if (!most) return std::nullopt;
  return said_of(list, *whose, *most);
}

/// Empty where no run says.
Section time_section(const RunList& list) {
  DocumentTable table{.caption =
                          "Parts of the seconds of all epochs (%); of CPU time what a host took, "
                          "and what threads waited for a CPU (%)",
                      .corner = "run",
                      .head = {"input", "forward", "backward", "allreduce", "slowest rank",
                               "optimizer", "other", "taken by the host", "wait for CPUs"}};
  Section section{"time", "Where the time went"};
  for (const RunRecord& run : list.runs) {
    const runfiles::EpochLine time = run.time();
    if (time.seconds <= 0) continue;
    Row& row = table.rows.emplace_back(Row{run.name});
    for (const BudgetPart& part : kBudgetParts)
      row.entries.push_back(share_entry((*time.budget).*part.seconds / time.seconds));
    row.entries.push_back(share_entry(time.taken.stolen));
    row.entries.push_back(share_entry(time.taken.cpu_wait));
    for (const cells::LostTime& lost : lost_time_of(run)) {
      if (section.remarks.size() < kMostRemarks)
        section.remarks.push_back(said_of(list, run, lost));
    }
  }
  if (table.rows.empty()) return {};
  table.sortable = table.rows.size() > 1;
  section.tables.push_back(std::move(table));
  if (DocumentTable lost = lost_table(list); !lost.rows.empty()) {
    section.tables.push_back(std::move(lost));
  }
  return section;
}

}  // namespace

std::string evaluation_text(const training::EvaluationFacts& evaluation) {
  if (!evaluation.accuracy) return "";
  return fmt::format("{:.4f} ({}) on {} images of {} ({}){}", *evaluation.accuracy,
                     interval_text(*evaluation.accuracy, evaluation.images),
                     images_text(evaluation), or_dash(without_folders(evaluation.data)),
                     part_text(evaluation.part),
                     evaluation.doubt.empty() ? "" : ", which training may have learnt from");
}

Document runs_document(const RunList& list) {
  const std::size_t n = list.runs.size();
  Document document{n == 1 ? "Training " + list.runs.front().name : fmt::format("{} trainings", n),
                    runs_headline(list)};
  document.card = runs_card(list);
  if (auto starved = starved_sentence(list)) document.headline.push_back(std::move(*starved));
  document.add(runs_section(list));
  document.add(differences_section(list.runs));
  for (const auto section : {evaluations_section, repeats_section, curves_section, time_section}) {
    document.add(section(list));
  }
  return document;
}

}  // namespace cputrain::report
