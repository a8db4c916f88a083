// A run folder as a record. Nothing in it is trusted, and nothing that is wrong keeps the rest
// away.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "checkpoint/folder.h"
#include "core/json_fields.h"
#include "core/json_text.h"
#include "core/text.h"
#include "scaling/report/forms/document.h"
#include "scaling/report/trainings/run_record.h"
#include "system/bounded_file.h"
#include "system/file_lock.h"
#include "training/run/lost_seconds.h"
#include "training/run/run_folder.h"
#include "training/run/training_identity.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

/// Flags that change neither weights nor times, and the seed.
constexpr std::string_view kUnimportant[] = {"seed",     "verbose",    "log-every",
                                             "timeline", "log-format", "timeline-steps",
                                             "keep",     "json",       "measure-limits"};

/// The object of a small file; an empty one, and the reason, where it is not there.
nlohmann::json object_of(const fs::path& file, std::vector<std::string>& troubles) {
  constexpr std::uintmax_t kMostOfAFile = 4 << 20;
  try {
    nlohmann::json object = parse_strict_json(system::read_bounded(file, kMostOfAFile));
    if (object.is_object()) return object;
    troubles.push_back(file.filename().string() + ": it is no JSON object");
  } catch (const std::runtime_error& problem) {
    troubles.push_back(fmt::format("{}: {}", file.filename().string(), printable(problem.what())));
  }
  return nlohmann::json::object();
}

std::string rule_text(const nlohmann::json& config) {
  std::string text = text_in(config, "optimizer");
  if (const auto rate = number_in(config, "lr")) text += fmt::format(" {:g}", *rate);
  if (number_in(config, "momentum").value_or(0) > 0)
    text += fmt::format(", momentum {:g}", *number_in(config, "momentum"));
  const std::string schedule = text_in(config, "schedule");
  return schedule.empty() || schedule == "constant" ? text : text + ", " + schedule;
}

void take_config(const nlohmann::json& config, RunRecord& run) {
  run.model = text_in(config, "model");
  run.data = text_in(config, "data");
  run.backend = text_in(config, "backend");
  run.precision = text_in(config, "precision");
  run.rule = rule_text(config);
  run.image_size = whole_of<int>(config, "image-size", 1, 1 << 24);
  run.batch = whole_of<std::int64_t>(config, "batch", 1, kMostCounted);
  run.seed = whole_of<std::int64_t>(config, "seed", 0, 9e15);
  if (!config.contains("steps")) run.planned_epochs = whole_of<int>(config, "epochs", 1, 1 << 24);
  try {
    const std::string target = text_in(config, "target-accuracy");
    if (!target.empty()) run.target = std::stod(target);
  } catch (const std::exception&) {  // without a target
  }
  for (const auto& [key, value] : config.items()) {
    if (std::ranges::find(kUnimportant, key) == std::end(kUnimportant))
      run.configuration[printable(key)] = text_in(config, key.c_str());
  }
}

/// "mpirun -np 2 ./cputrain --batch 128": the flags as they were typed, without those that say
/// where files go.
std::string command_of(const nlohmann::json& environment, int ranks) {
  constexpr std::size_t kMostFlags = 100;
  const auto given = environment.find("given");
  if (given == environment.end() || !given->is_object() || given->size() > kMostFlags) return "";
  std::vector<std::string> words;
  if (ranks > 1) words = {"mpirun", "-np", std::to_string(ranks)};
  words.emplace_back("./cputrain");
  for (const auto& [flag, value] : given->items()) {
    if (flag == "out" || flag == "overwrite" || flag == "resume" || flag == "end-with") continue;
    words.push_back("--" + flag);
    if (const std::string text = text_in(*given, flag.c_str()); text != "true")
      words.push_back(text);
  }
  return command_line(words);
}

std::string build_of(const nlohmann::json& environment) {
  const std::string version = text_in(environment, "cputrain"),
                    build = text_in(environment, "build");
  if (version.empty()) return "";
  return "cputrain " + version + (build.empty() ? "" : ", " + build);
}

void take_environment(const nlohmann::json& environment, RunRecord& run) {
  run.started = text_in(environment, "started");
  run.ranks = whole_of<int>(environment, "ranks", 1, 1 << 24);
  run.threads = whole_of<int>(environment, "threads_of_rank_0", 1, 1 << 24);
  const auto machine = environment.find("machine");
  if (machine != environment.end() && machine->is_object()) {
    run.machine = processor_text(text_in(*machine, "cpu"),
                                 whole_of<int>(*machine, "cores", 1, 1 << 24).value_or(0));
  }
  run.build = build_of(environment);
  run.command = command_of(environment, run.ranks.value_or(1));
  run.configuration["ranks"] = text_in(environment, "ranks");
  run.configuration["threads"] = text_in(environment, "threads_of_rank_0");
  run.configuration["machine"] = run.machine;
  run.configuration["version"] = text_in(environment, "cputrain");
}

/// Nothing where a part is missing, or more than there was.
std::optional<Budget> budget_of(const nlohmann::json& line, double seconds) {
  constexpr double kRounding = 1.01;
  const auto found = line.find("budget");
  if (found == line.end() || !found->is_object()) return std::nullopt;
  Budget budget;
  for (const BudgetPart& part : kBudgetParts) {
    const auto value = number_in(*found, part.name, -kMostCounted, kRounding * seconds);
    if (!value) return std::nullopt;
    budget.*part.seconds = *value;
  }
  return budget;
}

bool marked_nan(const nlohmann::json& line) { return line.value("nan", nlohmann::json()) == true; }

/// Goes through metrics.jsonl. A line that cannot be read is counted and passed over.
class MetricsReader {
 public:
  explicit MetricsReader(RunRecord& run) : run_(run) {}

  void read(const fs::path& file) {
    try {
      system::BoundedLines lines(file, training::kMetricsLimits);
      while (const auto line = lines.next()) {
        ++lines_;
        take(*line);
      }
    } catch (const std::runtime_error& problem) {
      run_.troubles.push_back("metrics.jsonl: " + printable(problem.what()));
    }
    look_at_last_step();
    if (faults_ == 1 && fault_is_last_ && lines_ > 1) {
      run_.troubles.push_back("metrics.jsonl: its last line is cut off (the others count)");
    } else if (faults_ > 0) {
      run_.troubles.push_back("metrics.jsonl: " + first_fault_ +
                              (faults_ > 1
                                   ? fmt::format(" ({} such lines; the others count)", faults_)
                                   : " (the others count)"));
    }
  }

  /// The summary, null where none ends the file.
  const nlohmann::json& summary() const { return summary_; }
  bool any() const { return lines_ > faults_; }

 private:
  void take(const std::string& text) {
    fault_is_last_ = false;
    // Steps are most lines by far, and only the last of them is looked into.
    if (text.starts_with("{\"type\":\"step\"") && text.ends_with('}')) {
      last_step_ = text;
      summary_ = nlohmann::json();
      return;
    }
    nlohmann::json line;
    try {
      line = parse_strict_json(text);
    } catch (const std::runtime_error&) {
    }
    if (!line.is_object()) {
      if (faults_++ == 0) first_fault_ = fmt::format("line {} is no JSON object", lines_);
      fault_is_last_ = true;
      return;
    }
    const nlohmann::json type = line.value("type", nlohmann::json());
    summary_ = type == "summary" ? std::move(line) : nlohmann::json();
    if (type == "epoch") take_epoch(line);
    if (type == "step") last_step_ = text;
    if (type == "resume") ++run_.resumed;
    if (type == "resume" || type == "epoch") last_step_.clear();
  }

  void take_epoch(const nlohmann::json& line) {
    const auto epoch = whole_of<int>(line, "epoch", 1, 1 << 24);
    const auto steps = number_in(line, "steps"), images = number_in(line, "images"),
               seconds = number_in(line, "seconds");
    if (!epoch || !steps || !images || !seconds) {
      if (faults_++ == 0)
        first_fault_ = fmt::format("line {} is no epoch as a run writes it", lines_);
      return;
    }
    RunEpoch e{.epoch = *epoch, .steps = *steps, .images = *images, .seconds = *seconds};
    e.validation_seconds = number_in(line, "val_seconds").value_or(0);
    const auto settled = line.find("settled");
    if (settled != line.end() && settled->is_object())
      e.settled = number_in(*settled, "steps").value_or(-1) >= *steps - 1;
    e.budget = budget_of(line, e.seconds);
    e.stolen = number_in(line, "stolen", 0, 1);
    e.cpu_wait = number_in(line, "cpu_wait", 0, 1);
    e.loss = number_in(line, "loss", -kMostCounted);
    e.val_loss = number_in(line, "val_loss", -kMostCounted);
    if (e.loss) e.accuracy = number_in(line, "accuracy", 0, 1);
    // An accuracy beside a loss that is not finite means nothing.
    if (e.val_loss || !line.contains("val_loss"))
      e.val_accuracy = number_in(line, "val_accuracy", 0, 1);
    // Where the file goes back, the later lines hold.
    while (!run_.epochs.empty() && run_.epochs.back().epoch >= *epoch) run_.epochs.pop_back();
    run_.epochs.push_back(e);
    run_.where = marked_nan(line) ? fmt::format("epoch {}", *epoch) : "";
  }

  /// A training whose loss is not finite ends after that step.
  void look_at_last_step() {
    const nlohmann::json step = nlohmann::json::parse(last_step_, nullptr, false);
    if (!step.is_object() || !marked_nan(step)) return;
    const auto number = whole_of<std::int64_t>(step, "step", 1, kMostCounted);
    run_.where = number ? fmt::format("step {}", *number) : "its last step";
  }

  RunRecord& run_;
  nlohmann::json summary_;
  std::string last_step_;  ///< after the last epoch
  std::string first_fault_;
  std::size_t lines_ = 0, faults_ = 0;
  bool fault_is_last_ = false;
};

/// A process has the lock of the folder. One that we may not open does not count.
bool is_locked(const fs::path& folder) {
  const fs::path lock = folder / ".lock";
  return ::access(lock.c_str(), R_OK) == 0 && system::LockProbe(lock).held();
}

/// The newest checkpoint that has its list of files, which is written last.
std::optional<std::uint64_t> newest_checkpoint(const fs::path& run) {
  std::error_code ignored;
  for (const checkpoint::Found& found : checkpoint::list(run)) {
    if (fs::is_regular_file(found.folder / checkpoint::kManifestName, ignored)) return found.step;
  }
  return std::nullopt;
}

Outcome outcome_of(const nlohmann::json& summary, const RunRecord& run, bool any) {
  if (summary.is_object()) {
    if (summary.value("outcome", nlohmann::json()) == "interrupted") return Outcome::interrupted;
    if (summary.value("early_stopped", nlohmann::json()) == true) return Outcome::stopped_early;
    if (summary.value("time_to_accuracy", nlohmann::json()).is_object())
      return Outcome::reached_target;
    return Outcome::finished;
  }
  if (is_locked(run.folder)) return Outcome::running;
  if (!run.where.empty()) return Outcome::not_a_number;
  return any ? Outcome::no_end : Outcome::no_figures;
}

/// Whether the run compared its last epochs with the best one: else its best.safetensors is of an
/// earlier start.
bool kept_best(const nlohmann::json& summary) {
  const auto training = summary.find("training");
  if (training == summary.end() || !training->is_object()) return false;
  const auto end = training->find(training::kEnd);
  return end != training->end() && end->is_object() &&
         (end->contains(training::kSaveBest) || end->contains("early-stopping"));
}

/// By the summary, where the files are there. Early stopping ends with the best weights.
KeptEpochs kept_epochs(const fs::path& folder, const nlohmann::json& summary) {
  constexpr int kMost = 1 << 24;
  KeptEpochs kept;
  if (!summary.is_object()) return kept;
  std::error_code ignored;
  if (fs::is_regular_file(folder / training::kBestName, ignored) && kept_best(summary)) {
    kept.best = whole_of<int>(summary, "best_epoch", 1, kMost);
  }
  // An interrupted run may have weights from within an epoch, and of one that early stopping ended
  // best.safetensors alone tells whether the best could be written.
  const bool is_best = summary.value("early_stopped", nlohmann::json()) == true;
  const bool known =
      summary.value("outcome", nlohmann::json()) != "interrupted" && (kept.best || !is_best);
  if (known && fs::is_regular_file(folder / training::kWeightsName, ignored)) {
    kept.weights = is_best ? kept.best : whole_of<int>(summary, "epochs", 1, kMost);
  }
  return kept;
}

}  // namespace

bool is_run_folder(const fs::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* file) { return fs::is_regular_file(folder / file, ignored); };
  return has("metrics.jsonl") || (has("config.json") && has("environment.json"));
}

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  run.folder = folder;
  run.name = (folder.filename().empty() ? folder.parent_path() : folder).filename().string();
  if (run.name.empty() || run.name == "." || run.name == "..") {
    std::error_code ignored;
    run.name = fs::canonical(folder, ignored).filename().string();
  }
  take_config(object_of(folder / "config.json", run.troubles), run);
  take_environment(object_of(folder / "environment.json", run.troubles), run);
  run.devices = cells::devices_of_run(folder);
  MetricsReader metrics(run);
  metrics.read(folder / "metrics.jsonl");
  const nlohmann::json& summary = metrics.summary();
  if (summary.is_object()) run.seconds = number_in(summary, "seconds");
  run.outcome = outcome_of(summary, run, metrics.any());
  run.kept = kept_epochs(folder, summary);
  run.checkpoint = newest_checkpoint(folder);
  run.lost = training::lost_seconds(folder);
  run.evaluations = read_evaluations(folder / "evaluations.jsonl", run.troubles);
  return run;
}

}  // namespace cputrain::report
