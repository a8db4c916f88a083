#include "cli/weights_choice.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/help/foreign_words.h"
#include "core/error.h"
#include "data/data_spec.h"
#include "model/safetensors.h"
#include "system/tell.h"
#include "training/run/run_weights.h"

namespace cputrain::cli {
namespace {

bool is_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || error;  // an error shows when it is read
}

/// Before anything long begins, and in a dry run, too.
void check_weights(const std::string& file) {
  if (!is_there(file)) {
    fail(ExitCode::data, fmt::format("--weights {}: there is no such file or folder (nothing can "
                                     "be loaded); name a weights.safetensors, or the folder of a "
                                     "run{}",
                                     file, hint_for_weights(file)));
  }
  const model::safetensors::File opened(file);
}

/// Images of a run may have moved since.
void check_data_of_run(const std::string& spec, const std::filesystem::path& run) {
  const data::DataSpec data = data::parse_data_spec(spec);
  if (data.word == "synthetic") return;
  for (const std::string& path : data.parts) {
    if (is_there(path)) continue;
    fail(ExitCode::data,
         fmt::format("the data of the run {}, {}, is not there (without --data its images are "
                     "evaluated); say where they are now: --data DATA",
                     run.string(), path));
  }
}

/// What writes a result replaces the file that is there.
void check_results_beside(Command& command) {
  const std::string& weights = command.options().weights;
  for (const auto& [flag, file] : command.results()) {
    std::error_code none;  // no such file: none is lost
    if (file.empty() || !std::filesystem::equivalent(file, weights, none)) continue;
    fail(ExitCode::usage,
         fmt::format("{} {}: this file holds the weights (the result would replace "
                     "them); name another file",
                     flag, file));
  }
}

}  // namespace

void check_weights_named(const Options& options) {
  if (!options.weights.empty()) return;
  fail(ExitCode::usage, options.task.name +
                            " needs --weights, the folder of a run or a weights.safetensors that "
                            "training wrote");
}

void ask_for_data(const training::Session& session, const training::TrainingFlags& flags) {
  if (!flags.data.empty()) return;
  training::say(
      session,
      fmt::format("No --data: {} synthetic images in the paper's shape. Was that meant? --data "
                  "FOLDER takes yours, a folder of images per class; --data synthetic says yes",
                  flags.task.evaluates ? "evaluating on" : "training on"));
}

bool take_data_of_run(Options& options, const std::filesystem::path& run) {
  const auto data = training::data_of_run(run);
  if (!data) return false;
  check_data_of_run(data->spec, run);
  options.data = data->spec;
  options.balanced = options.balanced || data->balanced;
  options.allow_empty_classes = options.allow_empty_classes || data->allow_empty_classes;
  if (!options.limit_val) options.limit_val = data->limit_validation;
  return true;
}

void choose_weights(Command& command, bool leads,
                    const std::function<void(const std::filesystem::path& run)>& take_run) {
  Options& options = command.options();
  if (options.weights.empty()) return;
  try {
    const training::NamedWeights found = training::find_weights(options.weights);
    options.weights = found.file.string();
    if (leads) check_weights(options.weights);
    check_results_beside(command);
    if (leads && !found.chosen.empty() && options.verbose != 0) system::tell(found.chosen);
    if (take_run) take_run(found.run);
  } catch (const Error&) {
    if (leads) throw;
  }
}

void Command::choose_files(bool leads) { choose_weights(*this, leads); }

}  // namespace cputrain::cli
