// The best training of a list in one piece.

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

std::string text_of(const std::vector<Choice>& choices, const char* head, const RunRecord& run) {
  const auto found = std::ranges::find(choices, head, &Choice::head);
  return found == choices.end() ? "" : found->text(run);
}

std::string subject_of(const std::vector<Choice>& choices, const RunRecord& run) {
  std::string text = text_of(choices, "model", run);
  const std::string size = text_of(choices, "image size", run);
  const std::string data = text_of(choices, "data", run);
  if (!size.empty()) text += " at " + size;
  if (!data.empty()) text += (text.empty() ? "" : ", ") + ("data " + data);
  return text.empty() ? run.name : text;
}

/// What it is best at: accuracy, or without a validation the loss.
void add_figure(Card& card, const RunRecord& run) {
  if (const auto best = run.best()) {
    card.figure = fmt::format("{:.4f}", best->accuracy);
    card.what = fmt::format("best validation accuracy, in epoch {} of {}", best->epoch,
                            run.epochs.back().epoch);
    return;
  }
  const bool known = !run.epochs.empty() && run.epochs.back().loss;
  card.figure = known ? figure_text(*run.epochs.back().loss) : kNotKnown;
  card.what = known ? fmt::format("loss of training in epoch {}", run.epochs.back().epoch)
                    : "no epoch came to its end";
}

std::string time_text(const RunRecord& run) {
  std::vector<std::string> parts;
  const auto best = run.best();
  if (best && best->seconds) parts.push_back(figure_text(*best->seconds) + " s of training to it");
  if (run.total_seconds()) parts.push_back(figure_text(*run.total_seconds()) + " s in all");
  return join(parts, ", ");
}

std::string machine_text(const RunRecord& run) {
  std::vector<std::string> parts;
  if (!run.machine.empty()) parts.push_back(run.machine);
  if (run.ranks && run.threads) {
    parts.push_back(counted(*run.ranks, "rank") + " x " + counted(*run.threads, "thread"));
  }
  return join(parts, "; ");
}

/// Accuracies on other images are no rank among these.
std::string training_text(const RunList& list) {
  const RunRecord& run = list.runs.front();
  const auto alike = std::ranges::count(list.runs, run.data, &RunRecord::data);
  return alike > 1 ? fmt::format("{}, the best of {}", run.name, alike) : run.name;
}

}  // namespace

Card runs_card(const RunList& list) {
  const RunRecord& run = list.runs.front();
  const std::vector<Choice> choices = choices_of(list.runs);
  Card card;
  card.subject = subject_of(choices, run);
  add_figure(card, run);
  if (list.runs.size() > 1) card.add("training", training_text(list));
  card.add("machine", machine_text(run));
  card.add("time", time_text(run));
  if (!run.evaluations.empty()) card.add("evaluated", evaluation_text(run.evaluations.front()));
  if (const auto rate = run.images_per_second()) card.add("images/s", figure_text(*rate));
  if (const auto cost = cost_of(run, list.prices))
    card.add("cost", figure_text(*cost) + " at the price given");
  card.add("batch", text_of(choices, "batch", run));
  card.add("optimizer", text_of(choices, "optimizer", run));
  card.add("date", run.started.substr(0, 10));
  card.add("program", run.build);
  card.command = run.command;
  return card;
}

}  // namespace cputrain::report
