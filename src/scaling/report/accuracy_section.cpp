// Accuracy by batch and CPUs, with intervals, and in words whether either of them changes it.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "core/statistics/statistics.h"
#include "scaling/report/grid_tables.h"
#include "scaling/report/scaling_document.h"

namespace cputrain::report {
namespace {

using Value = std::optional<double>;

/// An accuracy or a loss with what it is of.
struct Answer {
  const Series* series;
  const cells::Cell* cell;
  double value;
  double images;  ///< that it is a mean over, or that were seen until then
};

/// Two answers of one group that are the farthest apart.
struct Difference {
  Answer low, high;
  double pairs = 0;  ///< that were compared
  double size() const { return high.value - low.value; }
  /// By how much the farthest pair of as many independent samples differs in one case of 20: the
  /// standard error of a difference of proportions, times the normal quantile of 0.05 divided by
  /// the pairs (Bonferroni) and by two sides.
  double by_chance() const {
    constexpr double kNormal = 1e6;  // degrees of freedom that make Student's t normal
    const auto variance = [](const Answer& a) {
      const double p = (a.value * a.images + 1) / (a.images + 2);  // never 0 with few images
      return p * (1 - p) / a.images;
    };
    return student_quantile(1 - 0.025 / pairs, kNormal) * std::sqrt(variance(low) + variance(high));
  }
};

/// Every accuracy, the splits into ranks and threads among them, over so many images.
std::vector<Answer> answers_of(const ScalingTable& table, Value cells::Cell::*accuracy_of,
                               std::size_t cells::CellTable::*images_of) {
  std::vector<Answer> answers;
  for (const Series& series : table.series) {
    const auto images = static_cast<double>(series.about.*images_of);
    for (const auto& [where, place] : series.strong.cells) {
      for (const cells::Cell& cell : place.splits) {
        const Value accuracy = cell.*accuracy_of;
        if (accuracy && images > 0) answers.push_back({&series, &cell, *accuracy, images});
      }
    }
  }
  return answers;
}

/// The largest difference among answers that have the same key.
std::optional<Difference> largest(const std::vector<Answer>& answers,
                                  const std::function<std::size_t(const Answer&)>& key) {
  std::map<std::pair<const Series*, std::size_t>, std::vector<Answer>> groups;
  for (const Answer& a : answers) groups[{a.series, key(a)}].push_back(a);
  std::optional<Difference> result;
  double pairs = 0;
  for (const auto& [name, group] : groups) {
    const auto n = static_cast<double>(group.size());
    if (n < 2) continue;
    pairs += n * (n - 1) / 2;
    const auto [low, high] = std::ranges::minmax_element(group, {}, &Answer::value);
    const Difference here{*low, *high, 0};
    if (!result || here.size() > result->size()) result = here;
  }
  if (result) result->pairs = pairs;
  return result;
}

std::string sentence(const ScalingTable& table, const Difference& d, const char* kind,
                     const char* what) {
  const auto place = [&](const Answer& a) {
    return fmt::format("{:.4f} on {} ({} × {})", a.value, place_text(table, *a.series, *a.cell),
                       a.cell->ranks, a.cell->threads);
  };
  const bool shown = d.size() > d.by_chance();
  return fmt::format(
      "{}: accuracies of {} differ by at most {:.4f} ({}; {}), {} the {:.4f} by which the farthest "
      "of {:.0f} pairs of independent samples of so many images differs in one case of 20.",
      what, kind, d.size(), place(d.low), place(d.high), shown ? "more than" : "within",
      d.by_chance(), d.pairs);
}

std::optional<double> loss_at(const Curve& curve, double images) {
  const auto found = std::ranges::lower_bound(curve.images, images);
  if (found == curve.images.end() || *found != images) return std::nullopt;
  return curve.loss[static_cast<std::size_t>(found - curve.images.begin())];
}

/// The losses of the last step that all curves have.
std::optional<Difference> last_common_step(const std::vector<const CellCurve*>& curves) {
  const std::vector<double>& steps = curves.front()->curve.images;
  for (auto images = steps.rbegin(); images != steps.rend(); ++images) {
    std::vector<Answer> losses;
    for (const CellCurve* c : curves) {
      const auto loss = loss_at(c->curve, *images);
      if (!loss) break;
      losses.push_back({c->series, &c->cell->cell, *loss, *images});
    }
    if (losses.size() < curves.size()) continue;
    return Difference{*std::ranges::min_element(losses, {}, &Answer::value),
                      *std::ranges::max_element(losses, {}, &Answer::value)};
  }
  return std::nullopt;
}

/// How far apart the same step is on different CPUs, of the batch where that is most.
std::optional<std::string> same_step_sentence(const ScalingTable& table,
                                              const std::vector<CellCurve>& curves) {
  std::map<std::pair<const Series*, std::size_t>, std::vector<const CellCurve*>> batches;
  for (const CellCurve& c : curves) {
    if (!c.cell->cell.batch_per_rank) batches[{c.series, c.cell->cell.batch}].push_back(&c);
  }
  std::optional<Difference> most;
  for (const auto& [batch, group] : batches) {
    if (group.size() < 2) continue;
    const auto here = last_common_step(group);
    if (here && (!most || here->size() > most->size())) most = here;
  }
  if (!most) return std::nullopt;
  const auto place = [&](const Answer& a) {
    return fmt::format("{:.6f} on {}", a.value, place_text(table, *a.series, *a.cell));
  };
  return fmt::format(
      "The same step on different CPUs, at one batch: losses differ by at most {:.2g} (after "
      "{:.0f} images {}, {}).",
      most->size(), most->low.images, place(most->low), place(most->high));
}

/// By the accuracy of validation, which is what a model is for; where it is not known, of training.
void add_differences(Section& section, const ScalingTable& table, const char* what,
                     const std::function<std::size_t(const Answer&)>& key) {
  const char* kind = "validation";
  auto difference = largest(
      answers_of(table, &cells::Cell::val_accuracy, &cells::CellTable::validation_images), key);
  if (!difference) {
    kind = "training";
    difference = largest(
        answers_of(table, &cells::Cell::final_accuracy, &cells::CellTable::images_per_epoch), key);
  }
  if (difference) section.remarks.push_back(sentence(table, *difference, kind, what));
}

Entry accuracy_entry(const Series& series, const cells::Cell& cell) {
  const auto interval = validation_interval(series, cell);
  const std::string range =
      interval ? fmt::format(" ({:.4f} to {:.4f})", interval->low, interval->high) : "";
  return {fmt::format("{:.4f} on {}{}", *cell.val_accuracy, cell.cpus, range), "", 0,
          *cell.val_accuracy};
}

void add_accuracies(DocumentTable& rows, const ScalingTable& table, const Series& series) {
  std::map<GridRow, std::vector<const cells::Cell*>> batches;
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

Section accuracy_section(const ScalingFacts& facts) {
  const ScalingTable& table = facts.table;
  const Curves& curves = facts.curves;
  Section section{.id = "accuracy", .title = "Accuracy and loss", .plots = {"loss", "accuracy"}};
  const auto add = [&](const char* caption, Value cells::Cell::*figure) {
    const auto value = [figure](const ScalingCell& c) { return c.cell.*figure; };
    add_all(section.tables,
            both_grids(table, {.caption = caption, .value = value, .text = decimals<4>}));
  };
  add("Accuracy of training at the end (part of 1)", &cells::Cell::final_accuracy);
  add("Accuracy of validation at the end (part of 1)", &cells::Cell::val_accuracy);
  add("Loss of training at the end (nats)", &cells::Cell::final_loss);
  if (section.tables.empty() && curves.shown.empty()) return {};
  add_differences(section, table, "Processes and threads, at one batch",
                  [](const Answer& a) { return a.cell->batch; });
  add_differences(section, table, "Batch size, on the same CPUs",
                  [](const Answer& a) { return static_cast<std::size_t>(a.cell->cpus); });
  if (const auto same = same_step_sentence(table, curves.shown)) section.remarks.push_back(*same);
  if (curves.left_out > 0) {
    section.remarks.push_back(fmt::format(
        "Curves are those of the first {} cells that have some; {} more cells have runs.",
        curves.shown.size(), curves.left_out));
  }
  if (section.tables.empty()) {
    section.paragraphs.push_back(
        "No cell trained whole epochs, so there is no accuracy to compare; the page has the curves "
        "of the steps that were measured.");
  }
  return section;
}

Section accuracy_by_cpus_section(const ScalingFacts& facts) {
  DocumentTable rows{.caption = "Accuracy of validation over numbers of CPUs (part of 1)",
                     .corner = "batch",
                     .head = {"cells", "lowest, on CPUs", "highest, on CPUs"}};
  for (const Series& series : facts.table.series) add_accuracies(rows, facts.table, series);
  return with_tables(
      {.id = "constancy",
       .title = "Accuracy by CPUs",
       .plots = {"accuracy-by-cpus"},
       .tables = {std::move(rows)},
       .remarks = {
           "In brackets: 95 % over the validation images (Wilson), as if they were drawn at "
           "random. "
           "Trainings of one seed see the same images in the same order on any number of CPUs, so "
           "what differs is rounding and what it grew to.",
           "An epoch may have been chosen by these images (--save-best, --early-stopping, a "
           "target): "
           "eval on images of a test part has no such choice in it."}});
}

}  // namespace cputrain::report
