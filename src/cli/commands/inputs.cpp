#include "cli/commands/inputs.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/dataset.h"
#include "training/weights/named_weights.h"

namespace cputrain::commands {
namespace {

/// Images of a run may have moved since.
void check_data_of_run(const std::string& spec, const std::filesystem::path& run) {
  const data::DataSpec data = data::parse_data_spec(spec);
  if (data.word == "synthetic") return;
  for (const std::string& path : data.parts) {
    std::error_code error;  // one shows when it is read
    if (std::filesystem::exists(path, error) || error) continue;
    fail(ExitCode::data,
         fmt::format("the data of the run {}, {}, is not there (without --data its images are "
                     "evaluated); say where they are now: --data DATA",
                     run.string(), path));
  }
}

}  // namespace

void add_test_time_flag(cli::Flags& f, TestTime& looks) {
  f.choice("tta", all_words<TestTime>(),
           "flip: predict by the mean of the probabilities of each image and of its mirror image "
           "[none]",
           [&looks](const std::string& word) { looks = parse_word<TestTime>("tta", word); });
}

void check_weights_named(const cli::Options& options) {
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

bool take_data_of_run(cli::Options& options, const std::filesystem::path& run) {
  const auto data = training::data_of_run(run);
  if (!data) return false;
  check_data_of_run(data->spec, run);
  options.data = data->spec;
  options.balanced = options.balanced || data->balanced;
  options.allow_empty_classes = options.allow_empty_classes || data->allow_empty_classes;
  if (!options.limit_val) options.limit_val = data->limit_validation;
  return true;
}

}  // namespace cputrain::commands
