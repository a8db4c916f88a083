// What comes first in a report of trainings: sentences, and the card.

#include <cmath>

#include "core/text.h"
#include "scaling/report/trainings/evaluation_page.h"
#include "scaling/report/trainings/runs_document.h"
#include "training/run/run_folder.h"

namespace cputrain::report {
namespace {

using Runs = std::vector<const RunRecord*>;

constexpr std::size_t kMostDataSets = 3;

std::string after_text(const BestAccuracy& at) {
  return fmt::format(
      "in epoch {}{}", at.epoch,
      at.seconds ? fmt::format(", after {} s of training", figure_text(*at.seconds)) : "");
}

/// In which file the weights of the best epoch are, or that they are in none; empty where that is
/// not known.
std::string kept_sentence(const RunRecord& run, const BestAccuracy& best) {
  std::vector<std::string> others;
  for (const auto& [file, epoch] : {std::pair{training::kWeightsName, run.weights_epoch},
                                    std::pair{training::kBestName, run.best_epoch}}) {
    if (!epoch) continue;
    if (*epoch == best.epoch) return fmt::format(" Its weights are in {}.", file);
    const auto found = std::ranges::find(run.epochs, *epoch, &runfiles::EpochLine::epoch);
    const auto accuracy = found != run.epochs.end() ? found->val_accuracy() : std::nullopt;
    if (accuracy == best.accuracy) {
      return fmt::format(" {} is of epoch {}, which did as well.", file, *epoch);
    }
    others.push_back(fmt::format("{} is of epoch {}{}", file, *epoch,
                                 accuracy ? fmt::format(" ({:.4f})", *accuracy) : ""));
  }
  if (others.empty()) return "";
  return fmt::format(" Its weights were not kept: {} (--monitor accuracy keeps them).",
                     join(others, ", "));
}

/// "Best validation accuracy: 0.9312, by a in epoch 7, after 123 s of training."
std::string best_sentence(const Runs& runs) {
  const RunRecord& first = *runs.front();
  const BestAccuracy best = *first.best();
  std::string text = fmt::format("Best validation accuracy: {:.4f}, by {} {}", best.accuracy,
                                 first.name, after_text(best));
  const auto equal = std::ranges::count_if(
      runs, [&](const RunRecord* r) { return r->best()->accuracy == best.accuracy; });
  if (equal > 1) text += fmt::format("; {} other{} did as well", equal - 1, equal > 2 ? "s" : "");
  return text + "." + kept_sentence(first, best);
}

/// What more than half of the runs reached, in whole hundredths where there are any.
double common_accuracy(const Runs& runs) {
  std::vector<double> accuracies;
  for (const RunRecord* run : runs) accuracies.push_back(run->best()->accuracy);
  std::ranges::sort(accuracies, std::greater());
  const double reached = accuracies[accuracies.size() / 2];
  constexpr double kRounding = 1e-9;  // 0.57 * 100 lies below 57
  const double rounded = std::floor(reached * 100 + kRounding) / 100;
  return rounded > 0 ? rounded : reached;
}

/// Nothing of a single run, to which there is nothing to compare, nor where no accuracy was asked
/// for and the first epoch brings every run to it.
std::optional<std::string> least_time_sentence(const Runs& runs, std::optional<double> wanted) {
  if (runs.size() < 2 && !wanted) return std::nullopt;
  const double accuracy = wanted ? *wanted : common_accuracy(runs);
  const RunRecord* quickest = nullptr;
  std::optional<BestAccuracy> at;
  std::size_t reached = 0, at_once = 0, untimed = 0, machines = 0;
  std::map<std::string, int> seen;
  for (const RunRecord* run : runs) {
    const auto first = run->first_with(accuracy);
    if (!first) continue;
    ++reached;
    at_once += first->epoch == 1 ? 1 : 0;
    machines += seen.emplace(run->machine, 0).second ? 1 : 0;
    if (!first->seconds) {
      ++untimed;
    } else if (!at || *first->seconds < *at->seconds) {
      quickest = run;
      at = first;
    }
  }
  if (!wanted && at_once == runs.size()) return std::nullopt;
  if (reached == 0) return fmt::format("No run reached {:g}.", accuracy);
  if (runs.size() == 1 && quickest)
    return fmt::format("It reached {:g} {}.", accuracy, after_text(*at));
  std::string text =
      fmt::format("{} of {} reached {:g}", reached, counted(runs.size(), "run"), accuracy);
  if (quickest) {
    text += fmt::format("; the least time was that of {} {} (one training each{})", quickest->name,
                        after_text(*at),
                        machines > 1 ? fmt::format(", on {} kinds of machines", machines) : "");
  }
  if (untimed > 0)
    text += fmt::format("; of {} the time is not known, since epochs are missing", untimed);
  return text + ".";
}

// The best training of a list in one piece.

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
  const auto loss = last_loss(run);
  card.figure = loss ? figure_text(*loss) : kNotKnown;
  card.what = loss ? fmt::format("loss of training in epoch {}", run.epochs.back().epoch)
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

std::vector<std::string> runs_headline(const RunList& list) {
  std::map<std::string, Runs> by_data;
  std::vector<std::string> order;  // the best runs' order
  for (const RunRecord& run : list.runs) {
    if (!run.best()) continue;
    if (!by_data.contains(run.data)) order.push_back(run.data);
    by_data[run.data].push_back(&run);
  }
  if (order.empty()) {
    const std::size_t n = list.runs.size();
    return {fmt::format("{} without a validation accuracy.",
                        n == 1 ? "One run" : fmt::format("{} runs", n))};
  }
  const auto choices = choices_of(list.runs);
  const auto data = std::ranges::find(choices, "data", &Choice::head);
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < std::min(order.size(), kMostDataSets); ++i) {
    const Runs& runs = by_data.at(order[i]);
    const std::string name = data->text(*runs.front());
    const std::string whose =
        order.size() > 1 ? (name.empty() ? "data not known" : name) + ": " : "";
    sentences.push_back(whose + best_sentence(runs));
    if (const auto least = least_time_sentence(runs, list.wanted_accuracy))
      sentences.push_back(whose + *least);
  }
  if (order.size() > kMostDataSets) {
    sentences.push_back(
        fmt::format("The table has runs of {} more data sets.", order.size() - kMostDataSets));
  }
  return sentences;
}

Card runs_card(const RunList& list) {
  const RunRecord& run = list.runs.front();
  const std::vector<Choice> choices = choices_of(list.runs);
  Card card;
  card.subject = subject_of(choices, run);
  add_figure(card, run);
  if (list.runs.size() > 1) card.add("training", training_text(list));
  const auto images = run.validation_images();
  if (const auto best = run.best(); best && images)
    card.add("95 % interval", interval_text(best->accuracy, static_cast<double>(*images)));
  card.add("machine", machine_text(run));
  card.add("time", time_text(run));
  if (!run.evaluations.empty()) card.add("evaluated", evaluation_text(run.evaluations.front()));
  const auto kept = run.seconds_from_features();
  if (const auto rate = run.images_per_second()) {
    card.add("images/s", figure_text(*rate) + (kept ? " through the network" : ""));
  }
  if (kept) card.add("features kept", figure_text(*kept) + " s per epoch that takes them");
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
