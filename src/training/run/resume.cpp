#include "training/run/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "checkpoint/state_file.h"
#include "core/error.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "training/asked_end.h"
#include "training/run/run_logs.h"
#include "training/run/same_training.h"
#include "training/run/taken_over.h"

namespace cputrain::training {
namespace {

/// Whether the facts are such as RunControl writes.
std::string fault_of_facts(const nlohmann::ordered_json& facts) {
  for (const char* name : {"training", "logs"}) {
    if (!facts.contains(name) || !facts.at(name).is_object()) {
      return fmt::format("state.json has no {}", name);
    }
  }
  for (const char* name : {"ranks", "nodes"}) {
    if (!facts.contains(name) || !facts.at(name).is_number_integer()) {
      return fmt::format("state.json has no number of {}", name);
    }
  }
  if (!facts.contains("allreduce") || !facts.at("allreduce").is_string()) {
    return "state.json does not say how gradients were summed";
  }
  comm::parse_allreduce(facts.at("allreduce"));
  check_marks(facts.at("logs"));
  if (!facts.at("training").contains(kEnd)) return "state.json has no end of the training";
  end_of_json(facts.at("training").at(kEnd));
  return {};
}

/// Empty for a checkpoint that can be gone on from.
std::string resume_fault_of(const std::filesystem::path& checkpoint) {
  std::string fault = checkpoint::fault_of(checkpoint);
  if (!fault.empty()) return fault;
  try {
    const std::uint64_t steps = checkpoint::read_progress(checkpoint).steps;
    fault = fault_of_facts(checkpoint::read_facts(checkpoint));
    if (!fault.empty()) return fault;
    const auto named = checkpoint::step_of(checkpoint.filename().string());
    if (!named || *named == steps) return {};  // a copy may have any other name
    return fmt::format("it holds the state of step {}; its name would be {}", steps,
                       checkpoint::name_of(steps));
  } catch (const Error& error) {
    return error.what();
  }
}

Start choose_newest(const Session& session, const TrainingSpec& spec,
                    const std::filesystem::path& folder) {
  const bool finished = runfiles::is_finished(folder);
  Start start;
  start.checkpoint = newest_whole(session, folder);
  std::error_code ignored;
  start.finished = finished &&
                   is_at_its_end(folder, start.checkpoint,
                                 with_first_weights(begun_with(start.checkpoint), spec)) &&
                   std::filesystem::exists(folder / kWeightsName, ignored);
  if (start.finished) return start;
  start.goes_on = !start.checkpoint.empty();
  if (finished && !start.goes_on) {
    fail(ExitCode::usage,
         fmt::format("--resume auto: the training in {} is finished and left no checkpoint (it "
                     "would be made anew and lost); take --weights {} in another folder to train "
                     "on, or --overwrite",
                     folder.string(), (folder / kWeightsName).string()));
  }
  if (!start.goes_on && holds_run(folder)) {
    say(session, fmt::format("No checkpoint in {}: the training begins anew", folder.string()));
  }
  return start;
}

/// Going on in the checkpoint's own run would throw away what came after it.
void check_folder(const std::filesystem::path& checkpoint, const RunFolder& folder) {
  if (!folder.has(checkpoint)) {
    if (!holds_run(folder.path)) return;
    fail(ExitCode::usage,
         fmt::format("--resume {}: --out {} holds another run (the two would mix); name another "
                     "folder",
                     checkpoint.string(), folder.path.string()));
  }
  const auto all = checkpoint::list(folder.path);
  if (all.empty() || all.front().step <= checkpoint::read_progress(checkpoint).steps) return;
  fail(ExitCode::usage,
       fmt::format("--resume {}: {} in its folder is newer (it would be lost); name another folder "
                   "with --out, or move the newer ones away",
                   checkpoint.string(), all.front().folder.filename().string()));
}

/// Where a link leads to. One that leads nowhere was made of a checkpoint that newer ones replaced.
std::filesystem::path followed(const std::filesystem::path& checkpoint) {
  std::error_code error;
  if (!std::filesystem::is_symlink(checkpoint, error)) return checkpoint;
  const std::filesystem::path real = std::filesystem::canonical(checkpoint, error);
  if (!error) return real;
  fail(ExitCode::data,
       fmt::format("--resume {}: the link leads to {}, which is not there (a checkpoint goes when "
                   "newer ones come); use --resume auto with the --out of the run, or link to one "
                   "that is there",
                   checkpoint.string(), std::filesystem::read_symlink(checkpoint, error).string()));
}

void check_is_folder(const std::filesystem::path& checkpoint) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(checkpoint, ignored)) {
    fail(ExitCode::data,
         fmt::format("--resume {}: there is no such folder (nothing can go on from it); name a "
                     "folder ckpt-<step>, or auto",
                     checkpoint.string()));
  }
  if (checkpoint::list(checkpoint).empty()) return;
  fail(
      ExitCode::usage,
      fmt::format("--resume {0}: it is the folder of a run, not of a checkpoint; use --resume auto "
                  "--out {0}",
                  checkpoint.string()));
}

Start choose_named(const TrainingSpec& spec, const RunFolder& folder) {
  std::filesystem::path checkpoint = spec.flags.safety.resume;
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();  // "DIR/"
  checkpoint = followed(checkpoint);
  check_is_folder(checkpoint);
  const std::string fault = resume_fault_of(checkpoint);
  if (!fault.empty()) {
    fail(ExitCode::data,
         fmt::format("--resume {}: {} (nothing can go on from it); name another checkpoint, a "
                     "folder ckpt-<step>, or use --resume auto",
                     checkpoint.string(), fault));
  }
  if (!folder.path.empty()) check_folder(checkpoint, folder);
  Start start;
  start.goes_on = true;
  start.elsewhere = !folder.has(checkpoint);
  start.checkpoint = checkpoint;
  return start;
}

Start choose(const Session& session, const TrainingSpec& spec, const RunFolder& folder) {
  const std::string& resume = spec.flags.safety.resume;
  if (!session.leads() || resume.empty()) return {};
  if (resume != "auto") return choose_named(spec, folder);
  return folder.path.empty() ? Start{} : choose_newest(session, spec, folder.path);
}

/// So that neither the training's own checkpoints nor their pruning meet them.
void set_aside(const Session& session, const std::vector<checkpoint::Found>& damaged) {
  for (const checkpoint::Found& found : damaged) {
    const std::string name = found.folder.filename().string(),
                      kept = checkpoint::set_aside(found).filename().string();
    warn(session, kept != name
                      ? fmt::format("{} is kept as {}", name, kept)
                      : fmt::format("{} cannot be renamed: it stays until another one of its step "
                                    "takes its place",
                                    name));
  }
}

}  // namespace

std::filesystem::path newest_whole(const Session& session, const std::filesystem::path& folder) {
  std::vector<checkpoint::Found> damaged;
  for (const checkpoint::Found& found : checkpoint::list(folder)) {
    const std::string fault = resume_fault_of(found.folder);
    if (fault.empty()) {
      set_aside(session, damaged);
      return found.folder;
    }
    warn(session,
         fmt::format("checkpoint {} is passed over: {}", found.folder.filename().string(), fault));
    damaged.push_back(found);
  }
  if (damaged.empty()) return {};
  fail(ExitCode::data,
       fmt::format("of {} in {} none can be gone on from, see above (a training "
                   "that began anew would take their place); mend what keeps them from being read, "
                   "or begin anew with --overwrite",
                   counted(damaged.size(), "checkpoint"), folder.string()));
}

Start choose_start(const Session& session, const TrainingSpec& spec, const RunFolder& folder) {
  Start start = choose(session, spec, folder);
  take_over(session, spec, start);
  const auto found = comm::gather_values(
      *session.communicator, std::array<bool, 3>{start.finished, start.goes_on, start.elsewhere});
  start.finished = found.front()[0];
  start.goes_on = found.front()[1];
  start.elsewhere = found.front()[2];
  return start;
}

}  // namespace cputrain::training
