#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Runs = std::vector<const RunRecord*>;

constexpr std::size_t kMostDataSets = 3;

std::string after_text(const BestAccuracy& at) {
  return fmt::format(
      "in epoch {}{}", at.epoch,
      at.seconds ? fmt::format(", after {} s of training", figure_text(*at.seconds)) : "");
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
  return text + ".";
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

}  // namespace cputrain::report
