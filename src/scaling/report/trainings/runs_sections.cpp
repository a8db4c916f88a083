// Sections of a report of trainings.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/cells/explanation.h"
#include "scaling/report/forms/document.h"
#include "scaling/report/trainings/evaluation_page.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

// What `eval` found for the weights of the runs.

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

// Where the time went, and what trainings were starved of.

constexpr std::size_t kMostRemarks = 5;

Entry share_entry(std::optional<double> share) {
  if (share) *share *= 100;
  return figure_entry(share, [](double percent) { return fmt::format("{:.1f}", percent); });
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
    return [loss](R r, T) {
      return figure_entry((r.lost.*loss).seconds,
                          [](double s) { return fmt::format("{:.1f}", s); });
    };
  };
  const auto restarts = [](R r, T) {
    return figure_entry(r.lost.restarts.times, [](double n) { return fmt::format("{:.0f}", n); });
  };
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
  const RunRecord::Time time = run.time();
  return cells::lost_time(time.budget, time.seconds, time.stolen, time.cpu_wait);
}

}  // namespace

std::string evaluation_text(const RunEvaluation& evaluation) {
  if (!evaluation.accuracy) return "";
  return fmt::format("{:.4f} ({}) on {} images of {} ({}){}", *evaluation.accuracy,
                     interval_text(evaluation), images_text(evaluation),
                     or_dash(without_folders(evaluation.data)), part_text(evaluation.part),
                     evaluation.doubt.empty() ? "" : ", which training may have learnt from");
}

Section evaluations_section(const RunList& list) {
  using E = const Evaluated&;
  using T = DocumentTable&;
  std::vector<Evaluated> all;
  for (const RunRecord& run : list.runs) {
    for (const RunEvaluation& one : run.evaluations) all.push_back({&run, &one});
  }
  if (all.empty()) return {};
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
           {"weights", text([](const RunEvaluation& e) {
              return e.looks.empty() ? e.weights : e.weights + ", --tta " + e.looks;
            })},
           {"loss", [](E e, T) { return figure_entry(e.what->loss); }},
           {"date", text([](const RunEvaluation& e) { return e.date; })}})},
      .remarks = {"These are the results of eval at its date. Weights that were written later may "
                  "give others."}};
}

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

Section time_section(const RunList& list) {
  DocumentTable table{.caption =
                          "Parts of the seconds of all epochs (%); of CPU time what a host took, "
                          "and what threads waited for a CPU (%)",
                      .corner = "run",
                      .head = {"input", "forward", "backward", "allreduce", "slowest rank",
                               "optimizer", "other", "taken by the host", "wait for CPUs"}};
  Section section{"time", "Where the time went"};
  for (const RunRecord& run : list.runs) {
    const RunRecord::Time time = run.time();
    if (time.seconds <= 0) continue;
    Row& row = table.rows.emplace_back(Row{run.name});
    for (const BudgetPart& part : kBudgetParts)
      row.entries.push_back(share_entry(time.budget.*part.seconds / time.seconds));
    row.entries.push_back(share_entry(time.stolen));
    row.entries.push_back(share_entry(time.cpu_wait));
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

}  // namespace cputrain::report
