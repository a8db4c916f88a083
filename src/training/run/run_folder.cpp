#include "training/run/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/version.h"
#include "logging/reporters.h"
#include "logging/tensorboard.h"
#include "runfiles/metrics.h"
#include "system/clock.h"
#include "system/files.h"
#include "system/usage/work_meter.h"
#include "training/request/training_rows.h"

namespace cputrain::training {
namespace {

/// Files that not every run has.
std::vector<std::string> extra_files() {
  std::vector<std::string> files = logging::log_format_files();
  files.insert(files.end(), {kProfileName, kLimitsName, kFirstWeightsName, kBestName, kAveragesName,
                             kEvaluationsName, kStallsName});
  return files;
}

std::string time_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  return fmt::format(fmt::runtime(format), fmt::localtime(now));
}

/// Threads of the whole machine that ran or wanted to, over the last minute; null where the system
/// does not report it.
nlohmann::ordered_json load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? nlohmann::ordered_json(load) : nlohmann::ordered_json();
}

/// How OpenMP's threads wait and where they run, as far as it is in the environment that the
/// program was started in.
nlohmann::ordered_json openmp_variables() {
  nlohmann::ordered_json set = nlohmann::ordered_json::object();
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "OMP_PLACES",
                           "GOMP_CPU_AFFINITY", "OMP_NUM_THREADS", "OMP_DYNAMIC"}) {
    if (const char* value = std::getenv(name)) set[name] = printable(value);
  }
  return set;
}

/// Where and with what the run was made: host, processor, libraries, ranks and threads, time.
nlohmann::ordered_json environment_json(const Session& session, const TrainingPlan& plan) {
  nlohmann::ordered_json given = nlohmann::ordered_json::object();
  for (const auto& [flag, value] : plan.spec.flags.given) given[flag] = value;
  nlohmann::ordered_json facts{{"cputrain", kVersion},
                               {"build", session.services.program_build},
                               {"given", std::move(given)},
                               {"started", time_text("{:%Y-%m-%dT%H:%M:%S%z}")},
                               {"machine", machine_json(session.machine)},
                               {"load_average", load_average()},
                               {"openmp", openmp_variables()},
                               {"ranks", session.communicator->size()},
                               {"threads_of_rank_0", session.threads},
                               {"micro_batch", plan.micro_batch},
                               {"communication", session.communicator->describe()},
                               {"backend", session.backend->facts().description},
                               {"kernels_version", session.backend->facts().kernels_version},
                               {"placement", session.placement},
                               {"map", placement::map_of(session.plan)},
                               {"libraries", session.services.libraries}};
  if (session.device.chosen()) {
    facts["devices"] = session.device.line;
    facts["gpus"] = {{"count", session.device.all}, {"name", session.device.name}};
  }
  if (session.device.emulated) facts["emulated"] = true;
  return facts;
}

[[noreturn]] void refuse_run(const std::filesystem::path& folder) {
  fail(ExitCode::usage,
       "--out {} holds a run already (it would be lost); name another folder, add --resume auto to "
       "go on with it, or --overwrite",
       folder.string());
}

/// A folder in which nothing can be seen must not be taken for one in which nothing is.
void require_readable(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::directory_iterator opened(folder, error);
  if (!error) return;
  fail(ExitCode::data,
       "--out {} cannot be read: {} (a run in it would be lost); mend that, or name another folder",
       folder.string(), error.message());
}

/// Makes the folder: --out, or runs/<date>-<model>-np<ranks>-b<batch>, with a number where another
/// training has that one.
std::filesystem::path make_run_folder(const TrainingSpec& spec, int ranks) {
  if (spec.flags.out.empty()) {
    return system::make_new_folder(fmt::format("runs/{}-{}-np{}-b{}", time_text("{:%Y%m%d-%H%M%S}"),
                                               spec.model->name, ranks, spec.batch));
  }
  const std::filesystem::path folder = spec.flags.out;
  if (holds_run(folder) && !spec.flags.overwrite) refuse_run(folder);
  system::make_folder(folder);
  return folder;
}

constexpr const char* kLockName = ".lock";

/// For a lock that others seem to have: "; ..." where a killed process may have left it, else "".
std::string left_lock_remedy(const std::filesystem::path& path) {
  constexpr long kFuse = 0x65735546;  // linux/magic.h
  struct statfs about {};
  if (::statfs(path.c_str(), &about) != 0 || static_cast<long>(about.f_type) != kFuse) return "";
  return "; if none is, a killed one left its lock, as FUSE has it: remove " + path.string();
}

/// Error(usage) where another process keeps the lock for longer than a job takes to end, or it
/// cannot be had.
system::FileLock lock_folder(const Session& session, const std::filesystem::path& folder) {
  constexpr double kOrphansLast = 10;  // seconds; orphans notice within one
  const std::filesystem::path file = folder / kLockName;
  auto lock = system::FileLock::take(file, system::FileLock::Kind::exclusive);
  if (!lock) {
    say(session, "Waiting for the training that still works in {} (up to {} s)", folder.string(),
        kOrphansLast);
  }
  for (const system::Stopwatch watch; !lock && watch.seconds() < kOrphansLast;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    lock = system::FileLock::take(file, system::FileLock::Kind::exclusive);
  }
  if (lock) return std::move(*lock);
  fail(ExitCode::usage,
       "--out {}: another training is at work in it (they would write the same files); wait for "
       "its end, or name another folder{}",
       folder.string(), left_lock_remedy(file));
}

/// In a folder of several users, parts of a run may be another's, so that a training would remove
/// some of it and then fail. The earlier config.json stays until this training starts.
void require_writable(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> folders{run};
  for (const char* part : kEventFolders) folders.push_back(run / part);
  for (const auto& found : checkpoint::list(run)) folders.push_back(found.folder);
  for (const auto& folder : folders) {
    std::error_code ignored;  // a link is replaced itself
    const bool is_own = std::filesystem::is_directory(symlink_status(folder, ignored));
    if (is_own || folder == run) const system::AtomicFile tried(folder / kConfigName);
  }
}

/// What killed runs left of files that they were writing.
void remove_litter(const std::filesystem::path& folder) {
  for (const std::string& file : run_files()) system::remove_abandoned(folder / file);
  checkpoint::remove_abandoned(folder);
}

/// What config.json has: the flags that hold, with the weight file that was taken where a folder
/// was named.
nlohmann::ordered_json recorded_flags(const TrainingSpec& spec) {
  nlohmann::ordered_json flags = effective_flags(spec);
  const std::string& first =
      spec.flags.first_weights.empty() ? spec.flags.weights : spec.flags.first_weights;
  if (!first.empty()) flags["weights"] = first;
  return from_any_folder(std::move(flags));
}

/// config.json and environment.json: what the folder's other files are of.
void write_description(const Session& session, const TrainingPlan& plan,
                       const std::filesystem::path& folder) {
  system::write_own_file(folder / kConfigName, json_text(recorded_flags(plan.spec), 2) + "\n");
  system::write_own_file(folder / runfiles::kEnvironmentName,
                         json_text(environment_json(session, plan), 2) + "\n");
}

/// The folder is made, or found to be free, on rank 0.
void prepare_folder(const Session& session, const TrainingPlan& plan, RunFolder& folder) {
  if (folder.path.empty()) {
    folder.path = make_run_folder(plan.spec, session.communicator->size());
    folder.lock = lock_folder(session, folder.path);
    remove_litter(folder.path);
    if (holds_run(folder.path) && !plan.spec.flags.overwrite) refuse_run(folder.path);
  }
  if (holds_run(folder.path)) {
    require_writable(folder.path);
  } else {
    write_description(session, plan, folder.path);
  }
}

}  // namespace

std::vector<std::string> run_files() {
  std::vector<std::string> files = extra_files();
  files.insert(files.end(), {kConfigName, runfiles::kEnvironmentName, runfiles::kMetricsName,
                             "training.csv", "history.json", kWeightsName});
  return files;
}

bool is_of_run(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path end = fs::weakly_canonical(fs::absolute(file, error), error);  // of its links
  if (error) return false;  // what writes it says why
  const fs::path folder = end.parent_path();
  const bool in_checkpoint = checkpoint::step_of(folder.filename().string()).has_value();
  const fs::path run = in_checkpoint ? folder.parent_path() : folder;
  const std::string name = end.filename().string();
  if (!in_checkpoint && name != kLockName && std::ranges::count(run_files(), name) == 0) {
    return false;
  }
  return system::is_present(run / runfiles::kEnvironmentName) || holds_run(run);
}

bool RunFolder::has(const std::filesystem::path& checkpoint) const {
  std::error_code ignored;
  return std::filesystem::equivalent(std::filesystem::absolute(checkpoint).parent_path(), path,
                                     ignored);
}

std::optional<std::uint64_t> newest_checkpoint(const std::filesystem::path& folder) {
  for (const checkpoint::Found& found : checkpoint::list(folder)) {
    const auto manifest = found.folder / checkpoint::kManifestName;
    if (system::is_file(manifest)) return found.step;
  }
  return std::nullopt;
}

RunFolder take_run_folder(const Session& session, const TrainingFlags& flags) {
  const bool may_be_taken = !flags.safety.resume.empty() || flags.overwrite;
  if (!session.leads() || !may_be_taken || !system::is_folder(flags.out)) {
    return {};
  }
  require_readable(flags.out);
  RunFolder folder{flags.out, lock_folder(session, flags.out)};
  if (!flags.safety.resume.empty()) checkpoint::give_name_back(folder.path);
  remove_litter(folder.path);
  return folder;
}

void open_run_folder(const Session& session, const TrainingPlan& plan, RunFolder& folder) {
  if (session.leads()) prepare_folder(session, plan, folder);
  const std::string mine = session.leads() ? system::absolute_path(folder.path.string()) : "";
  session.watch.write_into(session.communicator->gather(mine).front());
}

void clear_run_folder(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be removed is written anew, or of no use
  for (const std::string& file : extra_files()) std::filesystem::remove(folder / file, ignored);
  for (const char* part : kEventFolders) logging::remove_event_files(folder / part);
  checkpoint::prune(folder, 0, 0);
}

void describe_run(const Session& session, const TrainingPlan& plan,
                  const std::filesystem::path& folder, bool goes_on) {
  if (!goes_on && !holds_run(folder)) return;  // described when it was made
  if (!goes_on) clear_run_folder(folder);
  write_description(session, plan, folder);
}

nlohmann::ordered_json machine_json(const placement::Machine& m) {
  return {{"host", m.host},
          {"cpu", m.cpu_model},
          {"cpu_id", to_json(m.cpu_id)},
          {"instruction_set", m.instruction_set},
          {"sockets", m.sockets},
          {"numa_nodes", m.numa_nodes},
          {"cores", m.cores},
          {"hardware_threads", m.hardware_threads},
          {"allowed_cores", m.allowed_cores},
          {"allowed_hardware_threads", m.allowed_cpus.size()},
          {"cpu_quota", m.cpu_quota},
          {"memory_gb", m.memory_gb}};
}

nlohmann::ordered_json placement_json(const placement::Placement& job) {
  nlohmann::ordered_json map = nlohmann::ordered_json::array();
  for (const placement::RankPlan& plan : job.ranks) {
    nlohmann::ordered_json rank{{"rank", plan.rank},
                                {"host", plan.host},
                                {"cores", plan.cores},
                                {"numa_nodes", plan.numa},
                                {"hardware_threads", plan.cpus},
                                {"threads", plan.threads},
                                {"input_threads", plan.input_threads},
                                {"bound", plan.bind},
                                {"communication_core", plan.communication_core}};
    if (plan.communication_cpu) rank["communication_hardware_thread"] = *plan.communication_cpu;
    map.push_back(std::move(rank));
  }
  return map;
}

}  // namespace cputrain::training
