#include "run/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "job/spec/effective_flags.h"
#include "logging/event_file.h"
#include "run/machine_json.h"
#include "system/files.h"

namespace cputrain::run {
namespace {

std::string time_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  return fmt::format(fmt::runtime(format), fmt::localtime(now));
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

/// Where and with what the run was made: host, processor, libraries, ranks and threads, time.
nlohmann::ordered_json environment_json(const job::Session& session, int micro_batch) {
  nlohmann::ordered_json json{{"cputrain", kVersion},
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
                              {"map", placement::map_of(session.plan)},
                              {"libraries", session.services.libraries}};
  if (!session.device.line.empty()) json["devices"] = session.device.line;
  if (session.device.emulated) json["emulated"] = true;
  return json;
}

/// Makes the folder: --out, or runs/<date>-<model>-np<ranks>-b<batch>. What killed runs left of
/// files that they were writing goes.
std::filesystem::path make_run_folder(const job::TrainingSpec& spec, int ranks) {
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
  system::make_folder(folder);
  for (const char* file : kRunFiles) system::remove_abandoned(folder / file);
  return folder;
}

/// What the folder's other files are of.
void describe_run(const job::Session& session, const job::TrainingPlan& plan,
                  const std::filesystem::path& folder) {
  system::write_file(folder / "config.json",
                     json_text(job::from_any_folder(job::effective_flags(plan.spec)), 2) + "\n");
  system::write_file(folder / "environment.json",
                     json_text(environment_json(session, plan.micro_batch), 2) + "\n");
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  std::error_code ignored;  // a folder that cannot be looked into shows when it is written
  return std::filesystem::exists(folder / "metrics.jsonl", ignored) ||
         std::filesystem::exists(folder / kWeightsName, ignored);
}

std::filesystem::path open_run_folder(const job::Session& session, const job::TrainingPlan& plan) {
  if (!session.leads()) return {};
  auto folder = make_run_folder(plan.spec, session.communicator->size());
  if (holds_run(folder)) {
    // Tries that the folder can be written; the earlier config.json stays until this training
    // starts.
    const system::AtomicFile tried(folder / "config.json");
  } else {
    describe_run(session, plan, folder);
  }
  return folder;
}

void clear_run_folder(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be removed is written anew, or of no use
  for (const char* file :
       {kProfileName, kLimitsName, kMlperfName, "dawnbench.tsv", "dawnbench.json"}) {
    std::filesystem::remove(folder / file, ignored);
  }
  for (const char* part : {"train", "validation"}) logging::remove_event_files(folder / part);
}

void replace_run(const job::Session& session, const job::TrainingPlan& plan,
                 const std::filesystem::path& folder) {
  if (!session.leads() || !holds_run(folder)) return;
  clear_run_folder(folder);
  describe_run(session, plan, folder);
}

void write_limits(const job::Session& session, const std::filesystem::path& folder) {
  const compute::Limits limits = job::measure_together(session);
  if (!session.leads()) return;
  const nlohmann::ordered_json json{{"fma_gflops", limits.fma_gflops},
                                    {"triad_gbs", limits.triad_gbs}};
  system::write_file(folder / kLimitsName, json_text(json, 2) + "\n");
}

}  // namespace cputrain::run
