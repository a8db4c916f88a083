#include "job/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/overloaded.h"
#include "core/text.h"
#include "core/version.h"
#include "data/data_spec.h"
#include "job/machine_json.h"
#include "job/recipe_choices.h"
#include "logging/event_file.h"
#include "system/absolute_path.h"
#include "system/files.h"

namespace cputrain {
namespace {

std::string time_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  return fmt::format(fmt::runtime(format), fmt::localtime(now));
}

void put_batches(nlohmann::ordered_json& flags, const TrainingSpec& spec) {
  flags["sharding"] = sharding_name(spec.plan.sharding);
  flags[spec.shuffle ? "shuffle" : "no-shuffle"] = true;
  flags[spec.plan.drop_last ? "drop-last" : "no-drop-last"] = true;
  flags["accumulate"] = spec.plan.accumulate;
  if (!spec.plan.growth.empty()) flags["batch-growth"] = growth_text(spec.plan.growth);
}

void put_rule(nlohmann::ordered_json& flags, const OptimizerOptions& optimizer) {
  flags["optimizer"] = rule_name(optimizer.rule);
  std::visit(Overloaded{[&](const Sgd& r) {
                          flags["momentum"] = r.momentum;
                          flags["nesterov"] = r.nesterov;
                        },
                        [&](const RmsProp& r) {
                          flags["momentum"] = r.momentum;
                          flags["rho"] = r.rho;
                          flags["epsilon"] = r.epsilon;
                          flags["centered"] = r.centered;
                        },
                        [&](const Adam& r) { flags["epsilon"] = r.epsilon; },
                        [&](const Lars& r) {
                          flags["momentum"] = r.momentum;
                          flags["trust"] = r.trust;
                        },
                        [&](const Lamb& r) { flags["epsilon"] = r.epsilon; }},
             optimizer.rule);
  flags["weight-decay"] = optimizer.weight_decay;
}

void put_learning_rate(nlohmann::ordered_json& flags, const TrainingSpec& spec) {
  const LearningRateOptions& rate = spec.learning_rate;
  flags["lr"] = rate.base;
  flags["lr-scale"] = scale_name(rate.scale);
  flags["warmup-epochs"] = rate.warmup_epochs;
  flags["schedule"] = schedule_text(rate.schedule);
  flags["label-smoothing"] = spec.flags.label_smoothing;
}

/// Threads of the whole machine that ran or wanted to, over the last minute; null where the system
/// does not tell.
nlohmann::ordered_json load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? nlohmann::ordered_json(load) : nlohmann::ordered_json();
}

/// How OpenMP's threads wait and where they run, as far as the environment says that the program
/// was started in.
nlohmann::ordered_json openmp_variables() {
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "OMP_PLACES",
                           "GOMP_CPU_AFFINITY", "OMP_NUM_THREADS", "OMP_DYNAMIC"}) {
    if (const char* value = std::getenv(name)) set[name] = printable(value);
  }
  return set;
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  std::error_code ignored;  // a folder that cannot be looked into shows when it is written
  return std::filesystem::exists(folder / "metrics.jsonl", ignored) ||
         std::filesystem::exists(folder / kWeightsName, ignored);
}

std::filesystem::path make_run_folder(const TrainingSpec& spec, int ranks) {
  std::filesystem::path folder = spec.flags.out;
  if (spec.flags.out.empty()) {
    const std::string name = fmt::format("runs/{}-{}-np{}-b{}", time_text("{:%Y%m%d-%H%M%S}"),
                                         spec.model->name, ranks, spec.batch);
    folder = name;
    std::error_code ignored;
    for (int n = 2; std::filesystem::exists(folder, ignored); ++n)
      folder = fmt::format("{}-{}", name, n);
  } else if (holds_run(folder) && !spec.flags.overwrite) {
    fail(ExitCode::usage,
         fmt::format("--out {} holds a run already (it would be lost); name another "
                     "folder or add --overwrite",
                     spec.flags.out));
  }
  make_folder(folder);
  for (const char* file : kRunFiles) remove_abandoned(folder / file);
  return folder;
}

void clear_run_folder(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be removed is written anew, or of no use
  for (const char* file :
       {kProfileName, kLimitsName, kMlperfName, "dawnbench.tsv", "dawnbench.json"}) {
    std::filesystem::remove(folder / file, ignored);
  }
  for (const char* part : {"train", "validation"}) remove_event_files(folder / part);
}

nlohmann::ordered_json effective_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags;
  for (const auto& [name, value] : spec.flags.given) {
    // What excludes a flag below is said by that flag.
    const bool replaced =
        name == "batch-per-rank" || name.ends_with("shuffle") || name.ends_with("drop-last");
    if (name != "out" && name != "overwrite" && name != "end-with" && !replaced)
      flags[name] = value;
  }
  flags["model"] = spec.model->spec;
  flags["image-size"] = spec.image.height;
  flags["data"] = spec.flags.data.empty() ? "synthetic" : spec.flags.data;
  flags["validation-split"] = spec.flags.validation_split.value_or(kValidationSplit);
  flags["resize"] = resize_name(spec.resize);
  flags["augment"] = to_text(spec.augment);
  flags["batch"] = spec.batch;
  if (spec.flags.micro_batch)
    flags["micro-batch"] = *spec.flags.micro_batch;  // else that of the machine
  flags["epochs"] = spec.epochs;
  flags["seed"] = spec.seed;
  put_batches(flags, spec);
  put_rule(flags, spec.optimizer);
  put_learning_rate(flags, spec);
  flags["backend"] = spec.flags.backend;
  flags["precision"] = spec.flags.precision;
  return flags;
}

nlohmann::ordered_json from_any_folder(nlohmann::ordered_json flags) {
  for (const char* name : {"weights", "timeline", "out"}) {
    if (flags.contains(name)) flags[name] = absolute_path(flags[name]);
  }
  if (flags.contains("data")) flags["data"] = absolute_data_spec(flags["data"]);
  return flags;  // a model's file is absolute already (ModelEntry::spec)
}

nlohmann::ordered_json environment_json(const Session& session, const Services& services,
                                        int micro_batch) {
  return {{"cputrain", kVersion},
          {"started", time_text("{:%Y-%m-%dT%H:%M:%S%z}")},
          {"machine", machine_json(session.machine)},
          {"load_average", load_average()},
          {"openmp", openmp_variables()},
          {"ranks", session.communicator->size()},
          {"threads_of_rank_0", session.threads},
          {"micro_batch", micro_batch},
          {"communication", session.communicator->describe()},
          {"backend", session.backend->describe()},
          {"placement", session.placement},
          {"map", map_of(session.plan)},
          {"libraries", services.libraries}};
}

}  // namespace cputrain
