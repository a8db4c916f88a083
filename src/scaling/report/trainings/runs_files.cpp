// Columns of runs, and their files of CSV and JSON.

#include <nlohmann/json.hpp>
#include <set>

#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/statistics/statistics.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "scaling/report/trainings/runs_document.h"

namespace cputrain::report {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

using Run = const RunRecord&;
using Table = DocumentTable&;
using Columns = std::vector<Column<RunRecord>>;

// How a training ended.

/// "finished", "reached-target", ...: for programs to read.
const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[] = {"finished",    "reached-target", "stopped-early",
                                    "interrupted", "not-a-number",   "running",
                                    "no-end",      "no-figures"};
  return kNames[static_cast<std::size_t>(outcome)];
}

/// "finished", "reached 0.9", "interrupted".
std::string outcome_text(const RunRecord& run) {
  constexpr const char* kTexts[] = {
      "finished", "reached its target", "stopped early",    "interrupted",
      "failed",   "still running",      "killed or failed", "no figures"};
  if (run.target && run.outcome == Outcome::finished)
    return fmt::format("finished below {:g}", *run.target);
  if (run.target && run.outcome == Outcome::reached_target)
    return fmt::format("reached {:g}", *run.target);
  return kTexts[static_cast<std::size_t>(run.outcome)];
}

/// "resumable from step 120", "loss of step 7 is NaN or infinite, resumed once"; may be empty.
std::string outcome_details(const RunRecord& run) {
  std::vector<std::string> parts;
  if (run.outcome == Outcome::not_a_number)
    parts.push_back(fmt::format("loss of {} is NaN or infinite", run.where));
  if (run.is_unfinished()) {
    parts.push_back(run.checkpoint ? fmt::format("resumable from step {}", *run.checkpoint)
                                   : "no checkpoint");
  }
  if (run.resumed > 0)
    parts.push_back(run.resumed == 1 ? "resumed once"
                                     : fmt::format("resumed {} times", run.resumed));
  return join(parts, ", ");
}

// Entries of tables.

int epochs_done(const RunRecord& run) { return run.epochs.empty() ? 0 : run.epochs.back().epoch; }

/// Where files could not be read, some epochs may be missing.
Entry epochs_entry(const RunRecord& run, DocumentTable& table) {
  const int done = epochs_done(run);
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
  if (const auto kept = run.seconds_from_features()) {
    entry.note = table.note(fmt::format(
        "{}: of epochs that went through the whole network. Where what its frozen layers make of "
        "images was kept, an epoch takes {} s.",
        run.name, figure_text(*kept)));
  }
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
Entry started_entry(const RunRecord& run, DocumentTable&) {
  if (run.started.empty()) return {kNotKnown};
  std::string text = run.started.substr(0, 16);
  if (text.size() == 16 && text[10] == 'T') text[10] = ' ';
  return {text};
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

// Columns of runs as JSON.

Json best_json(const RunRecord& run) {
  const auto best = run.best();
  if (!best) return nullptr;
  return {
      {"val_accuracy", best->accuracy}, {"epoch", best->epoch}, {"seconds", known(best->seconds)}};
}

Json time_json(const RunRecord& run) {
  runfiles::EpochLine time = run.time();
  Json json{{"seconds", time.seconds},
            {"budget", time.seconds > 0 ? json_of(*time.budget) : Json()}};
  JsonMembers members(json);
  fields_of_taken(members, time.taken);
  return json;
}

Json evaluations_json(const RunRecord& run) {
  Json list = Json::array();
  for (const training::EvaluationFacts& e : run.evaluations) {
    Json range;
    if (e.accuracy) {
      const Interval interval = accuracy_interval(*e.accuracy, e.images);
      range = {interval.low, interval.high};
    }
    list.push_back({{"date", e.date},
                    {"weights", e.weights},
                    {"data", e.data},
                    {"part", e.part},
                    {"tta", e.looks},
                    {"images", e.images},
                    {"accuracy", known(e.accuracy)},
                    {"interval", range},
                    {"loss", known(e.finite_loss())},
                    {"doubt", e.doubt},
                    {"build", e.build},
                    {"command", e.command}});
  }
  return list;
}

/// A member or what a function has of a run; null where that is not known.
template <class Member>
std::function<Json(const RunRecord&)> shown(Member member) {
  return [member](const RunRecord& run) -> Json {
    const auto& value = std::invoke(member, run);
    if constexpr (requires { value.has_value(); }) {
      return value ? Json(*value) : Json();
    } else {
      return value;
    }
  };
}

/// A column that has one name in all files.
template <class Member>
RunColumn plain(const std::string& key, Member member, Columns tables = {}) {
  return {key, shown(member), {{key}}, std::move(tables)};
}

Json run_json(const RunRecord& run, const std::vector<RunColumn>& columns) {
  Json json = Json::object();
  for (const RunColumn& column : columns) {
    if (!column.key.empty()) json[column.key] = column.value(run);
  }
  return json;
}

/// What runs were given otherwise than others. Of CSV those that are no column of it already.
RunColumn differences_column(const RunList& list, const std::vector<RunColumn>& others) {
  const std::vector<std::string> keys = keys_that_differ(list.runs);
  std::set<std::string> taken;
  for (const RunColumn& column : others) {
    for (const CsvColumn& csv : column.csv) taken.insert(csv.name);
  }
  RunColumn column{"differs", [keys](Run run) {
                     Json json = Json::object();
                     for (const std::string& key : keys) json[key] = value_json(run, key);
                     return json;
                   }};
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz0123456789- ";
  for (const std::string& key : keys) {
    std::string name = key;
    std::ranges::replace(name, ' ', '_');
    std::string with_lines = name;
    std::ranges::replace(with_lines, '-', '_');
    const bool is_plain = key.find_first_not_of(kLetters) == key.npos;
    if (is_plain && !taken.contains(with_lines)) column.csv.push_back({name, "/" + key});
  }
  return column;
}

/// What was trained, and on what.
std::vector<RunColumn> request_columns() {
  return {{"name", shown(&RunRecord::name), {{"run"}}},
          plain("folder", [](Run r) { return r.folder.string(); }),
          plain("started", &RunRecord::started, {{"started", started_entry}}),
          plain("model", &RunRecord::model),
          plain("data", &RunRecord::data),
          plain("image_size", &RunRecord::image_size),
          plain("ranks", &RunRecord::ranks),
          plain("threads", &RunRecord::threads),
          plain("backend", &RunRecord::backend),
          plain("precision", &RunRecord::precision),
          plain("batch", &RunRecord::batch),
          plain("optimizer", &RunRecord::rule),
          plain("seed", &RunRecord::seed),
          plain("machine", &RunRecord::machine),
          {"build", shown(&RunRecord::build)},
          {"command", shown(&RunRecord::command)}};
}

/// What it came to.
std::vector<RunColumn> result_columns(const RunList& list) {
  const auto cost = [&list](Run r) { return cost_of(r, list.prices); };
  const auto figure = [](const char* head, auto of, bool always = true) -> Columns {
    return {{head, [of](Run r, Table) { return figure_entry(of(r)); }, always}};
  };
  const auto last_accuracy = [](Run r) {
    return last_loss(r) ? r.epochs.back().train.accuracy : std::nullopt;
  };
  return {
      plain("epochs", epochs_done, {{"epochs", epochs_entry}}),
      {"planned_epochs", shown(&RunRecord::planned_epochs)},
      {"best",
       best_json,
       {{"best_val_accuracy", "/val_accuracy"},
        {"best_epoch", "/epoch"},
        {"seconds_to_best", "/seconds"}},
       {best_column("best validation accuracy", accuracy_of, decimals<4>),
        best_column("in epoch", epoch_of, decimals<0>),
        best_column("seconds to it", seconds_of, figure_text)}},
      plain("loss", last_loss, figure("last loss", last_loss)),
      {"accuracy", shown(last_accuracy)},
      plain("val_loss", &RunRecord::val_loss,
            figure(
                "last validation loss", [](Run r) { return r.val_loss(); }, false)),
      plain("images_per_second", &RunRecord::images_per_second, {{"images/s", rate_entry}}),
      plain("seconds_from_features", &RunRecord::seconds_from_features),
      plain("includes_trials", &RunRecord::includes_trials),
      plain("seconds", &RunRecord::total_seconds, {{"seconds in all", total_entry}}),
      plain("cost", cost, figure("cost", cost, false)),
      {"time",
       time_json,
       {{kStolen, fmt::format("/{}", kStolen)}, {kCpuWait, fmt::format("/{}", kCpuWait)}}},
      {"evaluations", evaluations_json},
      plain("outcome", [](Run r) { return outcome_name(r.outcome); }, {{"outcome", outcome_entry}}),
      {"outcome_text", outcome_text},
      {"outcome_details", outcome_details},
      {"target_accuracy", shown(&RunRecord::target)},
      plain("resumed", &RunRecord::resumed),
      plain("checkpoint", &RunRecord::checkpoint),
      plain("troubles", &RunRecord::troubles),
      {"",
       {},
       {{"eval_accuracy", "/evaluations/0/accuracy"},
        {"eval_images", "/evaluations/0/images"},
        {"eval_data", "/evaluations/0/data"},
        {"eval_part", "/evaluations/0/part"}}}};
}

}  // namespace

std::vector<RunColumn> run_columns(const RunList& list) {
  std::vector<RunColumn> columns = request_columns();
  add_all(columns, result_columns(list));
  columns.push_back(differences_column(list, columns));
  return columns;
}

std::string runs_csv(const RunList& list) {
  const std::vector<RunColumn> columns = run_columns(list);
  std::vector<CsvColumn> names;
  for (const RunColumn& column : columns) {
    const std::string above = column.key.empty() ? "" : "/" + column.key;
    for (const auto& [name, path] : column.csv) names.push_back({name, above + path});
  }
  Csv csv(names);
  for (const RunRecord& run : list.runs) csv.add(run_json(run, columns));
  return csv.text();
}

Json runs_json(const RunList& list) {
  Json runs = Json::array(), same = Json::array();
  const std::vector<RunColumn> columns = run_columns(list);
  for (const RunRecord& run : list.runs) runs.push_back(run_json(run, columns));
  for (const auto& [repeats, what] : repeats_of(list.runs)) {
    Json names = Json::array();
    for (const RunRecord* run : repeats) names.push_back(run->name);
    same.push_back({{"configuration", what}, {"runs", std::move(names)}});
  }
  return {{"version", 1},
          {"headline", runs_headline(list)},
          {"runs", std::move(runs)},
          {"same_configuration", std::move(same)},
          {"differences", keys_that_differ(list.runs)},
          {"left_out", list.left_out},
          {"sweeps", list.sweeps}};
}

}  // namespace cputrain::report
