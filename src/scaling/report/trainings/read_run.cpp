// A run folder as a record. Nothing in it is trusted, and nothing that is wrong keeps the rest
// away.

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/json_fields.h"
#include "core/text.h"
#include "runfiles/description.h"
#include "runfiles/lost_seconds.h"
#include "scaling/report/forms/document.h"
#include "scaling/report/trainings/run_record.h"
#include "system/file_lock.h"
#include "training/asked_end.h"
#include "training/run/run_folder.h"
#include "training/run/training_identity.h"

namespace cputrain::report {
namespace {

namespace fs = std::filesystem;

/// Flags that change neither weights nor times, and the seed.
constexpr std::string_view kUnimportant[] = {"seed",     "verbose",    "log-every",
                                             "timeline", "log-format", "timeline-steps",
                                             "keep",     "json",       "measure-limits"};

/// What a file has, by its `read`; an empty object, and the reason, where it is not there.
nlohmann::json object_of(nlohmann::json (&read)(const fs::path& run), const fs::path& run,
                         const char* name, std::vector<std::string>& troubles) {
  try {
    return read(run);
  } catch (const std::runtime_error& problem) {
    troubles.push_back(fmt::format("{}: {}", name, printable(problem.what())));
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
  run.made_of["seed"] = text_in(config, "seed");
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
    run.machine = processor_text(
        placement::processor_name(text_in(*machine, "cpu"), run.devices.origin.cpu_id),
        whole_of<int>(*machine, "cores", 1, 1 << 24).value_or(0));
  }
  run.build = build_of(environment);
  run.command = command_of(environment, run.ranks.value_or(1));
  run.configuration["ranks"] = text_in(environment, "ranks");
  run.configuration["threads"] = text_in(environment, "threads_of_rank_0");
  run.configuration["machine"] = run.machine;
  run.configuration["kernels"] = text_in(environment, "kernels_version");
  run.configuration["version"] = text_in(environment, "cputrain");
}

void take_metrics(const runfiles::Metrics& metrics, RunRecord& run) {
  run.epochs = metrics.epochs;
  for (runfiles::EpochLine& line : run.epochs) {
    constexpr double kRounding = 1.01;
    const auto is_too_much = [&](const BudgetPart& part) {
      return (*line.budget).*part.seconds > kRounding * line.seconds;
    };
    if (line.budget && std::ranges::any_of(kBudgetParts, is_too_much)) line.budget.reset();
    run.where = line.nan ? fmt::format("epoch {}", line.epoch) : "";
  }
  run.resumed = static_cast<int>(metrics.resumes.size());
  // A training whose loss is not finite ends after that step.
  if (metrics.last_step && metrics.last_step->nan) {
    run.where = fmt::format("step {}", metrics.last_step->step);
  }
  if (metrics.summary) run.seconds = metrics.summary->seconds;
  for (const std::string& trouble : metrics.troubles) {
    run.troubles.push_back("metrics.jsonl: " + trouble);
  }
}

/// A process has the lock of the folder. One that we may not open does not count.
bool is_locked(const fs::path& folder) {
  const fs::path lock = folder / ".lock";
  return ::access(lock.c_str(), R_OK) == 0 && system::LockProbe(lock).held();
}

Outcome outcome_of(const runfiles::Metrics& metrics, const RunRecord& run) {
  if (const auto& summary = metrics.summary) {
    if (summary->interrupted) return Outcome::interrupted;
    if (summary->early_stopped) return Outcome::stopped_early;
    return summary->reached ? Outcome::reached_target : Outcome::finished;
  }
  if (is_locked(run.folder)) return Outcome::running;
  if (!run.where.empty()) return Outcome::not_a_number;
  return metrics.lines > 0 ? Outcome::no_end : Outcome::no_figures;
}

/// What flags do not say: other data may lie at the same path today.
void take_identity(const nlohmann::ordered_json& training, RunRecord& run) {
  if (!training.is_object()) return;
  const nlohmann::json identity(training);
  for (const char* fact :
       {"network", "classes", "training images", "validation images", training::kDamaged}) {
    run.made_of[fact] = text_in(identity, fact);
  }
  for (const auto& [name, key] :
       {std::pair{"hash of the data", "data"},
        std::pair{"hash of the first weights", training::kFirstWeights}}) {
    const std::string text = text_in(identity, key);
    const std::string_view hash = training::hash_or_text(text);
    if (hash != text) run.made_of[name] = hash;
  }
}

/// By the summary, where the files are there. Early stopping ends with the best weights.
void take_kept_epochs(const runfiles::SummaryLine& summary, RunRecord& run) {
  const auto identity = nlohmann::ordered_json::parse(summary.training, nullptr, false);
  take_identity(identity, run);
  if (system::is_file(run.folder / training::kBestName) && training::keeps_best(identity) &&
      summary.best_epoch > 0) {
    run.best_epoch = summary.best_epoch;
  }
  // An interrupted run may have weights from within an epoch, and of one that early stopping ended
  // best.safetensors alone tells whether the best could be written.
  const bool known = !summary.interrupted && (run.best_epoch || !summary.early_stopped);
  if (known && system::is_file(run.folder / training::kWeightsName)) {
    run.weights_epoch = summary.early_stopped ? run.best_epoch : summary.epochs;
  }
}

}  // namespace

bool is_run_folder(const fs::path& folder) {
  const auto has = [&](const char* file) { return system::is_file(folder / file); };
  return has(runfiles::kMetricsName) ||
         (has(runfiles::kConfigName) && has(runfiles::kEnvironmentName));
}

RunRecord read_run(const fs::path& folder) {
  RunRecord run;
  run.folder = folder;
  run.name = (folder.filename().empty() ? folder.parent_path() : folder).filename().string();
  if (run.name.empty() || run.name == "." || run.name == "..") {
    std::error_code ignored;
    run.name = fs::canonical(folder, ignored).filename().string();
  }
  run.devices = cells::devices_of_run(folder);
  take_config(object_of(runfiles::read_config, folder, runfiles::kConfigName, run.troubles), run);
  take_environment(
      object_of(runfiles::read_environment, folder, runfiles::kEnvironmentName, run.troubles), run);
  const runfiles::Metrics metrics = runfiles::read_metrics(folder / runfiles::kMetricsName);
  take_metrics(metrics, run);
  run.outcome = outcome_of(metrics, run);
  if (metrics.summary) take_kept_epochs(*metrics.summary, run);
  run.checkpoint = training::newest_checkpoint(folder);
  run.lost = runfiles::lost_seconds(folder, metrics);
  run.evaluations = read_evaluations(folder / "evaluations.jsonl", run.troubles);
  return run;
}

}  // namespace cputrain::report
