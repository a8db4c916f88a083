#include "cli/flags/combinations.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/flags/report_flags.h"
#include "cli/flags/sweep_flags.h"
#include "core/error.h"
#include "core/text.h"
#include "system/absolute_path.h"
#include "training/run/run_folder.h"
#include "training/validation_watchers.h"

namespace cputrain::cli {
namespace {

/// Commands that do nothing without weights.
bool takes_weights(const Config& config) {
  return config.command == "eval" || config.command == "predict" || config.command == "export";
}

/// The words that are no flags.
void check_files(const Config& config) {
  if (!config.files.empty() && config.command != "predict" && config.command != "data" &&
      config.command != "report") {
    const std::string& word = config.files.front();
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(word, ignored);
    const bool is_data = is_folder && config.command != "export" && config.command != "info" &&
                         config.command != "simulate";
    const bool is_weights = takes_weights(config) && config.weights.empty();
    fail(ExitCode::usage, fmt::format("{} is one word too many (flags begin with --){}", word,
                                      is_weights ? "; weights go after --weights: --weights " + word
                                      : is_data  ? "; a data set goes after --data: --data " + word
                                                 : ""));
  }
  if (config.command == "predict" && config.files.empty()) {
    fail(ExitCode::usage,
         fmt::format("predict needs image files or folders: {} predict --weights FILE IMAGE...",
                     config.program));
  }
  if (config.command == "report") check_report(config);
  const std::size_t most = config.topic == "pack" ? 2 : 1;
  if (config.command == "data" && config.files.size() > most) {
    fail(ExitCode::usage,
         fmt::format("{} is one word too many: data {} takes {}", config.files[most], config.topic,
                     most == 2 ? "a data set and a file" : "one folder or data set"));
  }
  if (config.topic == "synth" && config.files.empty()) {
    fail(ExitCode::usage,
         fmt::format("data synth needs a new folder: {} data synth FOLDER", config.program));
  }
  if (config.topic == "pack" && config.files.size() < 2) {
    fail(ExitCode::usage,
         fmt::format("data pack needs a data set and a file: {} data pack FOLDER FILE.ctpack",
                     config.program));
  }
}

/// What --out names must be a folder, or nothing yet.
void check_out(const Config& config) {
  std::error_code ignored;
  const auto what = std::filesystem::status(config.out, ignored).type();
  using std::filesystem::file_type;
  if (config.out.empty() || what == file_type::directory || what == file_type::not_found ||
      what == file_type::none || what == file_type::unknown) {
    return;
  }
  fail(ExitCode::usage,
       fmt::format("--out {}: is a file, and not a folder (several files are written there); name "
                   "a new folder, or that of an earlier run",
                   config.out));
}

/// What `export` writes, and from what.
void check_export(const Config& config) {
  if (config.onnx.empty() && config.safetensors.empty() && config.model_file.empty()) {
    fail(ExitCode::usage, "export needs --onnx FILE, --safetensors FILE or --model-file FILE");
  }
  if (config.weights.empty() && !(config.onnx.empty() && config.safetensors.empty())) {
    fail(ExitCode::usage,
         fmt::format("--{} needs --weights FILE, a weights.safetensors that training wrote",
                     config.onnx.empty() ? "safetensors" : "onnx"));
  }
  if (config.export_layout != "keras" && config.safetensors.empty()) {
    fail(ExitCode::usage, "--export-layout " + config.export_layout + " needs --safetensors FILE");
  }
}

void check_results(const Config& config) {
  const auto results = result_files(config);
  for (auto one = results.begin(); one != results.end(); ++one) {
    for (auto other = one + 1; other != results.end(); ++other) {
      if (one->second != other->second) continue;
      fail(ExitCode::usage, fmt::format("{} {} and {} {}: {} carries one of them", one->first,
                                        one->second, other->first, other->second,
                                        one->second == "-" ? "standard output" : "one file"));
    }
  }
}

/// Those that were asked for, or all that the backend has.
void choose_precisions(Config& config, const CommandLineChoices& choices) {
  config.precision_given =
      std::ranges::any_of(config.given, [](const auto& flag) { return flag.first == "precision"; });
  for (const training::BackendChoice& backend : choices.backends) {
    if (backend.name == config.backend && !config.precision_given)
      config.precisions = backend.precisions;
  }
  if (config.precision_given) config.precisions = {config.precision};
  config.precision = config.precisions.front();
}

/// Each backend has its own precisions; info and data compute nothing.
void check_precision(Config& config, const CommandLineChoices& choices) {
  if (config.command == "info" || config.command == "data") return;
  if (config.command == "sweep") return settle_precisions(config, choices);
  const auto able = choices.backends_with(config.precision), here = choices.backend_names();
  if (std::ranges::find(able, config.backend) != able.end()) return;
  const bool built = std::ranges::any_of(
      able, [&](const auto& name) { return std::ranges::find(here, name) != here.end(); });
  fail(ExitCode::usage,
       fmt::format("--precision {} needs --backend {}{}", word_of(config.precision),
                   join(able, " or "), built ? "" : ", in a build that has it"));
}

/// What can be gone on from, and gone back to. A checkpoint's own run is gone on with where no
/// other folder is named.
void check_safety(Config& config) {
  training::SafetyFlags& safety = config.safety;
  if (config.command != "train") safety.checkpoint_every = {};  // what measures keeps no state
  if (!safety.resume.empty() && config.overwrite) {
    fail(ExitCode::usage,
         "--resume goes on with a run, which --overwrite would replace; leave one of them out");
  }
  if (safety.resume == "auto" && config.out.empty()) {
    fail(ExitCode::usage,
         "--resume auto needs --out DIR, the folder of the run to go on with (each run without a "
         "name has a folder of its own)");
  }
  if (!safety.resume.empty() && safety.resume != "auto" && config.out.empty()) {
    const std::filesystem::path folder = system::absolute_path(safety.resume) + "/";
    const std::filesystem::path parent = folder.parent_path().parent_path();
    std::error_code ignored;  // a copy may lie anywhere
    if (std::filesystem::exists(parent / training::kConfigName, ignored)) config.out = parent;
  }
  if (safety.on_nan == loop::NanPolicy::rollback && !safety.takes_checkpoints()) {
    fail(ExitCode::usage,
         "--on-nan rollback goes back to a checkpoint, and --checkpoint-every 0 takes none; leave "
         "one of them out");
  }
}

}  // namespace

std::vector<std::pair<const char*, std::string>> result_files(const Config& config) {
  std::vector<std::pair<const char*, std::string>> files;
  for (const auto& [flag, file] : {std::pair("--confusion", config.confusion),
                                   {"--csv", config.csv},
                                   {"--page", config.page},
                                   {"--json", config.json}}) {
    if (!file.empty()) files.emplace_back(flag, file);
  }
  return files;
}

void check_combinations(Config& config, const CommandLineChoices& choices) {
  const bool named_by_word = config.command == "eval" && !config.files.empty();
  if (takes_weights(config) && config.command != "export" && config.weights.empty() &&
      !named_by_word) {
    fail(ExitCode::usage, config.command +
                              " needs --weights, the folder of a run or a weights.safetensors "
                              "that training wrote");
  }
  if (config.command == "eval" && config.limit_val == 0u) {
    fail(ExitCode::usage, "--limit-val 0: eval needs at least one image");
  }
  check_files(config);
  check_out(config);
  if (config.command == "export") check_export(config);
  if (config.partial && config.weights.empty()) {
    fail(ExitCode::usage, "--partial needs --weights FILE, whose weights are taken where they fit");
  }
  check_results(config);
  if (config.topic == "input" && config.data.empty()) {
    fail(ExitCode::usage, "bench input needs --data DIR, a folder of JPEG photographs");
  }
  if (config.settled_steps && !config.steps) {
    fail(ExitCode::usage, "--settled-steps needs --steps, which it may prolong");
  }
  if (config.profile && config.dry_run) {
    fail(ExitCode::usage, "--profile with --dry-run, which trains nothing; leave one out");
  }
  if (config.command == "data" && !config.files.empty()) config.data = config.files.front();
  if (config.command == "data" && config.data.empty()) {
    fail(ExitCode::usage, fmt::format("data {0} needs a data set: {1} data {0} FOLDER",
                                      config.topic, config.program));
  }
  if (config.command == "selftest") choose_precisions(config, choices);
  check_precision(config, choices);
  if (config.balanced && !config.limit_train && !config.limit_val) {
    fail(ExitCode::usage,
         "--balanced changes nothing without --limit-train or --limit-val, which it shares out");
  }
  if (config.command == "sweep") check_sweep(config);
  check_safety(config);
  if (config.command == "train" || config.command == "sweep") training::check_watchers(config);
}

}  // namespace cputrain::cli
