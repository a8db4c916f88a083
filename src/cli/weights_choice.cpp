#include "cli/weights_choice.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/flags/combinations.h"
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

void take_data_of_run(Config& config, const std::filesystem::path& run) {
  const auto data = training::data_of_run(run);
  if (!data) return;
  check_data_of_run(data->spec, run);
  config.data = data->spec;
  config.data_of_run = true;
  config.balanced = config.balanced || data->balanced;
  config.allow_empty_classes = config.allow_empty_classes || data->allow_empty_classes;
  if (!config.limit_val) config.limit_val = data->limit_validation;
}

/// What writes a result replaces the file that is there.
void check_results_beside(const Config& config) {
  for (const auto& [flag, file] : result_files(config)) {
    std::error_code none;  // no such file: none is lost
    if (!std::filesystem::equivalent(file, config.weights, none)) continue;
    fail(ExitCode::usage,
         fmt::format("{} {}: this file holds the weights (the result would replace "
                     "them); name another file",
                     flag, file));
  }
}

void choose(Config& config, bool leads) {
  const training::NamedWeights found = training::find_weights(config.weights);
  config.weights = found.file.string();
  if (leads) check_weights(config.weights);
  check_results_beside(config);
  if (leads && !found.chosen.empty() && config.verbose != 0) system::tell(found.chosen);
  if (config.command != "eval" || found.run.empty()) return;
  config.run = found.run.string();
  if (config.data.empty()) take_data_of_run(config, found.run);
}

}  // namespace

void choose_weights(Config& config, bool leads) {
  if (config.weights.empty()) return;
  try {
    choose(config, leads);
  } catch (const Error&) {
    if (leads) throw;
  }
}

}  // namespace cputrain::cli
