#include "cli/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/machine_json.h"
#include "core/error.h"
#include "core/files.h"
#include "core/version.h"

namespace cputrain {
namespace {

std::string time_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  return fmt::format(fmt::runtime(format), fmt::localtime(now));
}

}  // namespace

std::filesystem::path make_run_folder(const Config& config, const TrainingChoices& choices,
                                      int ranks) {
  std::filesystem::path folder = config.out;
  if (config.out.empty()) {
    const std::string name = fmt::format("runs/{}-{}-np{}-b{}", time_text("{:%Y%m%d-%H%M%S}"),
                                         choices.model->name, ranks, choices.batch);
    folder = name;
    for (int n = 2; std::filesystem::exists(folder); ++n) folder = fmt::format("{}-{}", name, n);
  } else if (std::filesystem::exists(folder / "config.json") && !config.overwrite) {
    fail(ExitCode::usage,
         fmt::format("--out {} holds a run already (it would be lost); name another "
                     "folder or add --overwrite",
                     config.out));
  }
  make_folder(folder);
  std::error_code ignored;  // of a run that is being overwritten: must not outlive its figures
  std::filesystem::remove(folder / "weights.safetensors", ignored);
  return folder;
}

nlohmann::ordered_json effective_flags(const Config& config, const TrainingChoices& choices,
                                       int micro_batch) {
  nlohmann::ordered_json flags;
  for (const auto& [name, value] : config.given) {
    if (name != "out" && name != "overwrite") flags[name] = value;
  }
  flags["model"] = choices.model->name;
  flags["image-size"] = choices.image.height;
  flags["data"] = config.data.empty() ? "synthetic" : config.data;
  flags["validation-split"] = config.validation_split;
  flags["batch"] = choices.batch;
  flags["micro-batch"] = micro_batch;
  flags["epochs"] = choices.epochs;
  flags["seed"] = choices.seed;
  flags["optimizer"] = rule_name(choices.optimizer.rule);
  flags["lr"] = choices.optimizer.learning_rate;
  flags["weight-decay"] = choices.optimizer.weight_decay;
  flags["backend"] = config.backend;
  flags["precision"] = config.precision;
  return flags;
}

nlohmann::ordered_json environment_json(const Session& session, const Services& services) {
  return {{"cputrain", kVersion},
          {"started", time_text("{:%Y-%m-%dT%H:%M:%S%z}")},
          {"machine", machine_json(session.machine)},
          {"ranks", session.communicator->size()},
          {"threads_of_rank_0", session.threads},
          {"communication", session.communicator->describe()},
          {"backend", session.backend->describe()},
          {"placement", session.placement},
          {"libraries", services.libraries}};
}

}  // namespace cputrain
