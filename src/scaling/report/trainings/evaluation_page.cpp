#include "scaling/report/trainings/evaluation_page.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "core/statistics/statistics.h"
#include "scaling/report/trainings/run_list.h"

namespace cputrain::report {
namespace {

using loop::ClassCounts;
using training::EvaluationFacts;

constexpr std::size_t kMostWithRates = 12;  // classes whose counts have rates beside them
constexpr std::size_t kMostPairs = 12;

Entry ratio_entry(std::optional<double> ratio) {
  Entry entry = figure_entry(ratio, decimals<4>);
  if (!ratio) entry.text = "n/a";
  return entry;
}

Entry count_entry(double count) { return figure_entry(count, decimals<0>); }

Section classes_section(const EvaluationFacts& facts) {
  using C = const ClassCounts&;
  using T = DocumentTable&;
  DocumentTable table = table_of<ClassCounts>(
      "Recall: part of the images of a class that were predicted rightly; precision: part of the "
      "predictions of a class that were right; F1: the harmonic mean of both",
      "class", facts.classes, &ClassCounts::name,
      {{"images", [](C c, T) { return count_entry(c.images); }},
       {"predictions", [](C c, T) { return count_entry(c.predictions); }},
       {"right", [](C c, T) { return count_entry(c.correct); }},
       {"recall", [](C c, T) { return ratio_entry(c.recall()); }},
       {"precision", [](C c, T) { return ratio_entry(c.precision()); }},
       {"F1", [](C c, T) { return ratio_entry(c.f1()); }}});
  if (facts.macro) {
    table.rows.push_back({"macro average",
                          {{},
                           {},
                           {},
                           ratio_entry(facts.macro->recall),
                           ratio_entry(facts.macro->precision),
                           ratio_entry(facts.macro->f1)},
                          true});
  }
  table.filterable = facts.classes.size() > kMostWithRates;
  Section section{.id = "classes", .title = "By class", .tables = {std::move(table)}};
  if (facts.matrix.empty())
    section.remarks.push_back("There is no confusion matrix: the classes are too many for one.");
  return section;
}

/// Those of the matrix that the page has: all, or those of most wrong predictions, in their own
/// order.
std::vector<std::size_t> shown_classes(const EvaluationFacts& facts) {
  std::vector<std::size_t> shown(facts.classes.size());
  std::iota(shown.begin(), shown.end(), 0);
  if (shown.size() <= kMostInPageMatrix) return shown;
  const auto errors = [&](std::size_t i) {
    const ClassCounts& c = facts.classes[i];
    return c.images + c.predictions - 2 * c.correct;
  };
  std::ranges::stable_sort(shown, std::greater(), errors);
  shown.resize(kMostInPageMatrix);
  std::ranges::sort(shown);
  return shown;
}

/// Parts of a row of the matrix as they are shown: whole numbers of 1 / scale.
using Units = std::vector<double>;

/// What the row comes to; less than 1 where some images have no prediction.
double whole_units(const std::vector<double>& counts, double images, double scale) {
  return std::floor(scale * std::accumulate(counts.begin(), counts.end(), 0.0) / images + 0.5);
}

Units rounded_units(const std::vector<double>& counts, double images, double scale) {
  Units units;
  for (const double count : counts) units.push_back(std::floor(scale * count / images + 0.5));
  return units;
}

/// Rounded down, and the largest remainders up, until they add up.
Units fitted_units(const std::vector<double>& counts, double images, double scale) {
  Units units;
  std::vector<std::pair<double, std::size_t>> remainders;
  for (const double count : counts) {
    units.push_back(std::floor(scale * count / images));
    remainders.emplace_back(units.back() - scale * count / images, remainders.size());
  }
  std::ranges::sort(remainders);  // the largest first, since they are negative
  double missing =
      whole_units(counts, images, scale) - std::accumulate(units.begin(), units.end(), 0.0);
  for (const auto& [remainder, place] : remainders) {
    if (missing-- < 1 || remainder == 0) break;
    ++units[place];
  }
  return units;
}

/// Texts of the parts of each row. A reader adds them up: there are as many decimals, of two to
/// four, as make the parts of every row one; where none do, as of thirds, the parts of a row are
/// rounded together.
std::vector<std::vector<std::string>> rate_texts(const EvaluationFacts& facts) {
  constexpr int kLeast = 2, kMost = 4;
  const auto adds_up = [&](int decimals) {
    const double scale = std::pow(10, decimals);
    for (std::size_t row = 0; row < facts.matrix.size(); ++row) {
      const double images = facts.classes[row].images;
      if (images <= 0) continue;
      const Units units = rounded_units(facts.matrix[row], images, scale);
      if (std::accumulate(units.begin(), units.end(), 0.0) !=
          whole_units(facts.matrix[row], images, scale)) {
        return false;
      }
    }
    return true;
  };
  int places = kLeast;
  while (places <= kMost && !adds_up(places)) ++places;
  const bool fit = places > kMost;
  if (fit) places = kLeast;
  const double scale = std::pow(10, places);
  std::vector<std::vector<std::string>> texts(facts.matrix.size());
  for (std::size_t row = 0; row < facts.matrix.size(); ++row) {
    const double images = std::max(1.0, facts.classes[row].images);
    for (const double part : (fit ? fitted_units : rounded_units)(facts.matrix[row], images, scale))
      texts[row].push_back(fmt::format("{:.{}f}", part / scale, places));
  }
  return texts;
}

Entry matrix_entry(double count, double images, const std::string& rate) {
  Entry entry = count_entry(count);
  if (images <= 0) return entry;
  entry.shade = count / images;
  if (count > 0) entry.mark = rate;
  return entry;
}

DocumentTable matrix_table(const EvaluationFacts& facts, const std::vector<std::size_t>& shown) {
  const bool with_rates = shown.size() <= kMostWithRates;
  DocumentTable table{.caption = fmt::format("Rows: what images are; columns: what was predicted. "
                                             "Counts{}; colours are parts of a row",
                                             with_rates ? " and parts of a row" : ""),
                      .corner = "is \\ predicted"};
  for (const std::size_t column : shown) table.head.push_back(facts.classes[column].name);
  const auto rates = with_rates ? rate_texts(facts) : std::vector<std::vector<std::string>>{};
  for (const std::size_t row : shown) {
    Row line{facts.classes[row].name, {}};
    for (const std::size_t column : shown) {
      line.entries.push_back(matrix_entry(facts.matrix[row][column], facts.classes[row].images,
                                          with_rates ? rates[row][column] : ""));
    }
    table.rows.push_back(std::move(line));
  }
  return table;
}

/// Actual classes and wrong predictions, by their numbers, the most frequent first.
std::vector<std::pair<std::size_t, std::size_t>> mistakes_of(const EvaluationFacts& facts) {
  std::vector<std::pair<std::size_t, std::size_t>> mistakes;
  for (std::size_t row = 0; row < facts.matrix.size(); ++row) {
    for (std::size_t column = 0; column < facts.matrix[row].size(); ++column) {
      if (row != column && facts.matrix[row][column] > 0) mistakes.emplace_back(row, column);
    }
  }
  std::ranges::stable_sort(mistakes, std::greater(),
                           [&](const auto& m) { return facts.matrix[m.first][m.second]; });
  mistakes.resize(std::min(mistakes.size(), kMostPairs));
  return mistakes;
}

DocumentTable mistakes_table(const EvaluationFacts& facts) {
  const auto& classes = facts.classes;
  const auto count = [&](const auto& m) { return facts.matrix[m.first][m.second]; };
  return table_of<std::pair<std::size_t, std::size_t>>(
      "The most frequent mistakes", "is", mistakes_of(facts),
      [&](const auto& m) { return classes[m.first].name; },
      {{"predicted", [&](const auto& m, auto&) { return Entry{classes[m.second].name}; }},
       {"images", [&](const auto& m, auto&) { return count_entry(count(m)); }},
       {"of class",
        [&](const auto& m, auto&) { return ratio_entry(count(m) / classes[m.first].images); }}});
}

Section confusion_section(const EvaluationFacts& facts) {
  if (facts.matrix.empty()) return {};
  Section section{"confusion", "Confusion matrix"};
  const std::vector<std::size_t> shown = shown_classes(facts);
  section.tables.push_back(matrix_table(facts, shown));
  if (shown.size() < facts.classes.size()) {
    section.remarks.push_back(
        fmt::format("The matrix has the {} classes of {} with most wrong predictions; eval "
                    "--confusion writes all of it.",
                    shown.size(), facts.classes.size()));
  }
  if (facts.classes.size() > 2) section.tables.push_back(mistakes_table(facts));
  if (section.tables.back().rows.empty()) section.tables.pop_back();
  return section;
}

/// Where it lies in the data.
std::string name_within(const std::string& data, const std::string& name) {
  const std::string folder = data.substr(data.find(':') + 1) + "/";
  return name.starts_with(folder) ? name.substr(folder.size()) : name;
}

std::string errors_sentence(const EvaluationFacts& facts) {
  const double wrong = facts.images - facts.correct - facts.undecided;
  const std::size_t shown = facts.surest_errors.size();
  if (wrong <= 0)
    return facts.undecided > 0 ? "No other prediction was wrong." : "No prediction was wrong.";
  const std::string which =
      static_cast<double>(shown) < wrong
          ? fmt::format("The {} of {:.0f} wrong predictions with the highest probabilities", shown,
                        wrong)
      : shown == 1
          ? "The only wrong prediction"
          : fmt::format("All {} wrong predictions, the highest probabilities first", shown);
  return which + ", as the network saw the images. Wrong labels are often among them.";
}

Section errors_section(const EvaluationFacts& facts) {
  Section section{"errors", "Most surely wrong", {errors_sentence(facts)}};
  for (const training::WrongImage& image : facts.surest_errors) {
    const auto& [type, file, width, height] = image.picture;
    Picture picture{type, {reinterpret_cast<const char*>(file.data()), file.size()}, width, height};
    picture.text = fmt::format("predicted {} ({:.4f}), is {} ({:.4f})", image.prediction,
                               image.probability, image.truth, image.probability_of_truth);
    picture.details = name_within(facts.data, image.name);
    section.pictures.push_back(std::move(picture));
  }
  return section;
}

Card card_of(const EvaluationFacts& facts) {
  Card card;
  card.subject = facts.model + ", data " + without_folders(facts.data);
  card.figure = facts.accuracy ? fmt::format("{:.4f}", *facts.accuracy) : kNotKnown;
  card.what = fmt::format("accuracy on {:.0f} images ({})", facts.images, part_text(facts.part));
  if (facts.accuracy) card.add("95 % interval", interval_text(*facts.accuracy, facts.images));
  card.add("loss", std::isnan(facts.loss) ? "NaN" : fmt::format("{:.4f}", facts.loss));
  if (facts.penalty > 0)
    card.add("L2 penalty", fmt::format("{:.4f}, not in the loss", facts.penalty));
  if (facts.among_five) card.add("top-5 accuracy", fmt::format("{:.4f}", *facts.among_five));
  if (facts.macro) card.add("macro F1", fmt::format("{:.4f}", facts.macro->f1));
  if (facts.auc) card.add("AUC", fmt::format("{:.4f}", *facts.auc));
  card.add("classes", std::to_string(facts.classes.size()));
  card.add("weights", facts.weights);
  card.add("machine", processor_text(facts.cpu, facts.cores));
  card.add("backend", facts.backend);
  card.add("date", facts.date);
  card.add("program", facts.build);
  card.command = facts.command;
  return card;
}

}  // namespace

std::string interval_text(double accuracy, double images) {
  const Interval range = accuracy_interval(accuracy, images);
  return fmt::format("{:.4f} to {:.4f}", range.low, range.high);
}

std::string part_text(const std::string& part) { return part == "all" ? part : part + " part"; }

std::string doubt_sentence(const std::string& doubt) {
  return fmt::format("Training may have learnt from these images: {}.", doubt);
}

Document evaluation_document(const EvaluationFacts& facts) {
  Document document{"Evaluation of " + facts.model};
  document.card = card_of(facts);
  if (!facts.doubt.empty()) document.headline.push_back(doubt_sentence(facts.doubt));
  if (facts.undecided > 0) {
    document.headline.push_back(
        fmt::format("{:.0f} predictions are NaN and count as wrong.", facts.undecided));
  }
  for (const auto section : {confusion_section, classes_section, errors_section}) {
    document.add(section(facts));
  }
  return document;
}

std::string evaluation_page(const EvaluationFacts& facts) {
  return html(evaluation_document(facts), "");
}

}  // namespace cputrain::report
