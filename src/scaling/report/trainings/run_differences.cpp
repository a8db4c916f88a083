#include <nlohmann/json.hpp>
#include <set>

#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "scaling/report/forms/escapes.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;
using Run = const RunRecord&;

/// What environment.json says among the flags: unlike a flag, it is never left out on purpose.
bool is_fact(const std::string& key) {
  return key == "ranks" || key == "threads" || key == "machine" || key == "version";
}

/// Whether two of the runs say something else. A run without config.json says nothing of flags.
bool differs(const std::vector<RunRecord>& runs, const std::string& key, bool is_flag) {
  std::set<std::string> values;
  for (const RunRecord& run : runs) {
    const auto value = value_of(run, key);
    if (value) values.insert(*value);
    if (!value && is_flag && !run.model.empty()) values.insert("");
  }
  return values.size() > 1;
}

/// A flag that was not given is another thing than a fact that nobody wrote down.
Entry value_entry(Run run, const std::string& key) {
  const auto value = value_of(run, key);
  return {value ? *value : kNotKnown};
}

DocumentTable keys_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  DocumentTable table{.corner = "what"};
  for (const RunRecord& run : runs) table.head.push_back(run.name);
  for (const std::string& key : keys) {
    Row row{.label = key};
    for (const RunRecord& run : runs) row.entries.push_back(value_entry(run, key));
    table.rows.push_back(std::move(row));
  }
  return table;
}

DocumentTable runs_table(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  DocumentTable table{.corner = "run", .sortable = true, .filterable = true};
  table.head = keys;
  for (const RunRecord& run : runs) {
    Row row{.label = run.name};
    for (const std::string& key : keys) row.entries.push_back(value_entry(run, key));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Where runs may have another L2 penalty in their losses; else empty.
std::string penalty_sentence(std::vector<std::string> keys) {
  std::erase_if(
      keys, [](const auto& key) { return key != "freeze" && key != "model" && key != "network"; });
  if (keys.empty()) return "";
  return fmt::format(
      "Losses of training and validation include the L2 penalty of the layers that learn, if the "
      "model has one. These runs differ in {}: compare accuracies, or losses of eval.",
      join(keys, ", "));
}

// Two runs beside each other.

/// A figure of a run that has a difference worth saying.
struct ComparedFigure {
  const char* name;
  std::function<Value(Run)> of;
  std::string (*text)(double);
  bool has_ratio = true;
};

/// The newest evaluation's; a run may have been evaluated on images that the other never saw.
Value evaluated_accuracy(Run run) {
  return run.evaluations.empty() ? std::nullopt : run.evaluations.front().accuracy;
}

bool evaluated_alike(const std::vector<RunRecord>& both) {
  const auto &a = both[0].evaluations, &b = both[1].evaluations;
  return !a.empty() && !b.empty() && a[0].data == b[0].data && a[0].part == b[0].part &&
         a[0].looks == b[0].looks && a[0].images == b[0].images;
}

std::vector<ComparedFigure> compared_figures(const std::vector<RunRecord>& both) {
  const auto of_best = [](auto member) {
    return [member](Run r) -> Value {
      const auto best = r.best();
      if (!best) return std::nullopt;
      return std::invoke(member, *best);
    };
  };
  std::vector<ComparedFigure> figures{
      {"best validation accuracy", of_best(&BestAccuracy::accuracy), decimals<4>, false},
      {"in epoch", of_best(&BestAccuracy::epoch), decimals<0>, false},
      {"seconds to it", of_best(&BestAccuracy::seconds), figure_text},
      {"last validation loss", [](Run r) { return r.val_loss(); }, decimals<4>, false},
      {"last loss", [](Run r) { return last_loss(r); }, decimals<4>, false},
      {"images/s", [](Run r) { return r.images_per_second(); }, figure_text},
      {"seconds per epoch from kept features", [](Run r) { return r.seconds_from_features(); },
       figure_text},
      {"epochs", [](Run r) { return Value(static_cast<double>(r.epochs.size())); }, decimals<0>,
       false},
      {"seconds in all", [](Run r) { return r.total_seconds(); }, figure_text}};
  if (evaluated_alike(both))
    figures.push_back({"accuracy by eval", evaluated_accuracy, decimals<4>, false});
  std::erase_if(figures, [&](const ComparedFigure& f) { return !f.of(both[0]) && !f.of(both[1]); });
  return figures;
}

Value difference_of(const ComparedFigure& figure, const std::vector<RunRecord>& both) {
  const Value a = figure.of(both[0]), b = figure.of(both[1]);
  return a && b ? Value(*b - *a) : std::nullopt;
}

Value ratio_of(const ComparedFigure& figure, const std::vector<RunRecord>& both) {
  const Value a = figure.of(both[0]), b = figure.of(both[1]);
  return figure.has_ratio && a && b && *a > 0 ? Value(*b / *a) : std::nullopt;
}

/// "+0.0125", "-3.00".
Entry signed_entry(Value value, std::string (*text)(double)) {
  Entry entry = figure_entry(value, text);
  if (value && *value > 0) entry.text.insert(0, "+");
  return entry;
}

DocumentTable figures_table(const std::vector<RunRecord>& both) {
  DocumentTable table{.caption =
                          "Figures, the difference of the second to the first, and how "
                          "many times the first the second is",
                      .corner = "figure",
                      .head = {both[0].name, both[1].name, "difference", "times"}};
  for (const ComparedFigure& figure : compared_figures(both)) {
    table.rows.push_back({figure.name,
                          {figure_entry(figure.of(both[0]), figure.text),
                           figure_entry(figure.of(both[1]), figure.text),
                           signed_entry(difference_of(figure, both), figure.text),
                           figure_entry(ratio_of(figure, both))}});
  }
  return table;
}

std::optional<Interval> interval_of(Run run) {
  const auto best = run.best();
  const auto images = run.validation_images();
  if (!best || !images) return std::nullopt;
  return accuracy_interval(best->accuracy, static_cast<double>(*images));
}

/// What the difference of accuracies is worth. Intervals that have nothing in common show one;
/// those that overlap may hide one, so no more is said.
std::string accuracy_sentence(const std::vector<RunRecord>& both) {
  const auto a = both[0].best(), b = both[1].best();
  if (!a || !b) return "";
  const std::string found = fmt::format("Best validation accuracy: {:.4f} of {} and {:.4f} of {}",
                                        a->accuracy, both[0].name, b->accuracy, both[1].name);
  if (value_of(both[0], "data") != value_of(both[1], "data"))
    return found + ", on other images, so they say nothing of each other.";
  const auto first = interval_of(both[0]), second = interval_of(both[1]);
  if (!first || !second) return found + ".";
  const bool apart = first->high < second->low || second->high < first->low;
  return fmt::format("{}: {} (95 % intervals {:.4f} to {:.4f} and {:.4f} to {:.4f}).", found,
                     apart ? "a difference beyond the images that were looked at"
                           : "no difference shown by so few images",
                     first->low, first->high, second->low, second->high);
}

}  // namespace

std::optional<std::string> value_of(const RunRecord& run, const std::string& key) {
  for (const auto* map : {&run.configuration, &run.made_of}) {
    const auto found = map->find(key);
    if (found != map->end() && !found->second.empty()) return found->second;
  }
  return std::nullopt;
}

std::vector<std::string> keys_that_differ(const std::vector<RunRecord>& runs) {
  std::set<std::string> flags, facts;
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.configuration) (is_fact(key) ? facts : flags).insert(key);
    for (const auto& [key, value] : run.made_of) facts.insert(key);
  }
  std::vector<std::string> keys;
  std::ranges::copy_if(flags, std::back_inserter(keys),
                       [&](const auto& key) { return differs(runs, key, true); });
  std::ranges::copy_if(facts, std::back_inserter(keys),
                       [&](const auto& key) { return differs(runs, key, false); });
  return keys;
}

Section differences_section(const std::vector<RunRecord>& runs) {
  constexpr std::size_t kFew = 4;  // columns that a telephone shows
  const std::vector<std::string> keys = keys_that_differ(runs);
  if (keys.empty()) return {};
  DocumentTable table = runs.size() <= kFew || keys.size() > runs.size() ? keys_table(runs, keys)
                                                                         : runs_table(runs, keys);
  table.caption = "Flags, recipes, data and machine, where runs differ; –: not given, or not known";
  Section section{.id = "differences", .title = "What differs", .tables = {std::move(table)}};
  if (std::string penalty = penalty_sentence(keys); !penalty.empty())
    section.remarks.push_back(std::move(penalty));
  return section;
}

Document run_difference_document(const std::vector<RunRecord>& both) {
  Document document{both[0].name + " and " + both[1].name + " beside each other"};
  if (std::string sentence = accuracy_sentence(both); !sentence.empty())
    document.headline.push_back(std::move(sentence));
  document.add(differences_section(both));
  if (document.sections.empty())
    document.summary.push_back("Nothing differs in their flags, data and machine.");
  document.add(Section{.id = "figures", .title = "Figures", .tables = {figures_table(both)}});
  return document;
}

Json value_json(Run run, const std::string& key) {
  const auto value = value_of(run, key);
  return value ? Json(*value) : Json();
}

Json run_difference_json(const std::vector<RunRecord>& both) {
  Json differences = Json::array(), figures = Json::array();
  for (const std::string& key : keys_that_differ(both)) {
    differences.push_back(
        {{"key", key}, {"before", value_json(both[0], key)}, {"after", value_json(both[1], key)}});
  }
  for (const ComparedFigure& figure : compared_figures(both)) {
    figures.push_back({{"name", figure.name},
                       {"before", known(figure.of(both[0]))},
                       {"after", known(figure.of(both[1]))},
                       {"difference", known(difference_of(figure, both))},
                       {"ratio", known(ratio_of(figure, both))}});
  }
  return {{"version", 1},
          {"before", both[0].name},
          {"after", both[1].name},
          {"differences", std::move(differences)},
          {"figures", std::move(figures)}};
}

std::string run_difference_csv(const std::vector<RunRecord>& both) {
  Csv csv({{"kind"}, {"name"}, {"before"}, {"after"}, {"difference"}, {"ratio"}});
  const Json all = run_difference_json(both);
  for (Json row : all["differences"]) {
    row["kind"] = "configuration";
    row["name"] = row["key"];
    csv.add(row);
  }
  for (Json row : all["figures"]) {
    row["kind"] = "figure";
    csv.add(row);
  }
  return csv.text();
}

}  // namespace cputrain::report
