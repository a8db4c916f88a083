#include "training/run/resume.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
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
#include "training/run/training_identity.h"

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

/// Whether a way of summing goes with what is asked for now. One that does not would be refused
/// with advice about a flag that was not given.
bool suits(const Session& session, const TrainingFlags& flags,
           const comm::AllreduceChoice& before) {
  using Scheme = comm::AllreduceChoice::Scheme;
  if (flags.reproducible) return false;
  // NCCL is taken again where all ranks still can, and there may be other GPUs now, or none.
  if (before.devices) return false;
  if (flags.shard_dense.value_or(false) && before.scheme != Scheme::slices) return false;
  return session.backend->memory().is_host() || before.scheme == Scheme::replicas;
}

std::string allreduce_of(const Session& session, const TrainingSpec& spec,
                         const std::filesystem::path& checkpoint) {
  if (checkpoint.empty()) return {};
  const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
  const nlohmann::ordered_json& training = facts.at("training");
  const std::string none = "none", asked = exchange::to_text(spec.flags.compress);
  const bool as_before = (training.contains("compress") ? training.at("compress")
                                                        : nlohmann::ordered_json(none)) == asked;
  const bool alike = as_before && facts.at("ranks") == session.communicator->size() &&
                     facts.at("nodes") == session.nodes.nodes();
  const std::string before = facts.at("allreduce");
  return alike && suits(session, spec.flags, comm::parse_allreduce(before)) ? before : "";
}

/// What a checkpoint says of its training under a name; empty where that is no text.
std::string text_in(const std::filesystem::path& checkpoint, const char* name) {
  if (checkpoint.empty()) return {};
  const nlohmann::ordered_json training = checkpoint::read_facts(checkpoint).at("training");
  const auto found = training.find(name);
  return found != training.end() && found->is_string() ? found->get<std::string>() : "";
}

/// What a training chose for itself, as it stands in its checkpoint; empty where nothing does. Says
/// that it goes on so, where it would now be another one by itself. `done`: what is done so to
/// images.
std::string choice_of(const Session& session, const Start& start, const char* flag, bool given,
                      std::string_view standard, const char* done) {
  const std::string before = text_in(start.checkpoint, flag);
  if (start.goes_on && !given && !before.empty() && before != standard) {
    say_detail(session, "This training goes on with --{} {}, as its images were {} so far", flag,
               printable(before), done);
  }
  return before;
}

/// The name in the value of kFirstWeights, which has a hash, too.
std::string name_of_weights(const std::string& value) {
  constexpr std::string_view kPartial = " --partial";
  std::string_view name = value;
  const std::string_view hash = hash_or_text(name);
  if (hash.size() < name.size()) name.remove_suffix(hash.size() + 3);  // " (" and ")"
  if (name.ends_with(kPartial)) name.remove_suffix(kPartial.size());
  return std::string(name);
}

/// As config.json has it, which is right from any folder; else as it was named.
std::string first_weights_in(const std::filesystem::path& checkpoint) {
  const std::string named = text_in(checkpoint, kFirstWeights);
  if (named.empty()) return {};
  const std::string recorded = recorded_weights(checkpoint.parent_path());
  return recorded.empty() ? name_of_weights(named) : recorded;
}

/// Name of the weights, then name, image size and --normalize of the model, a line each, for all
/// ranks. Of a name with a line break only the first line arrives.
std::string first_weights_in_lines(const Start& start) {
  std::string lines = split(start.first_weights, '\n').front();
  if (const auto& model = start.first_model) {
    lines += fmt::format("\n{}\n{}\n{}", model->name, model->image_size, model->normalize);
  }
  return lines;
}

void read_first_weights(const std::string& text, Start& start) {
  const std::vector<std::string> lines = split(text, '\n');
  start.first_weights = lines.at(0);
  start.first_model.reset();
  if (lines.size() == 4) start.first_model = {lines[1], std::stoi(lines[2]), lines[3]};
}

/// The fit of that text; nothing for any other.
std::optional<data::Fit> fit_named(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return data::parse_fit(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The weights that the checkpoint's training began with, and its model. On rank 0; nothing where
/// there is no checkpoint or it began with none.
void find_first_weights(Start& start) {
  if (start.checkpoint.empty()) return;
  start.first_weights = first_weights_in(start.checkpoint);
  if (start.first_weights.empty()) return;
  start.first_model = described_model(start.checkpoint / checkpoint::kModelName);
}

/// The spec of a training that began so: weights decide its recipe, named again or not, and its
/// model where --model does not.
TrainingSpec with_first_weights(const Start& start, TrainingSpec spec) {
  if (start.first_weights.empty()) return spec;
  TrainingFlags& flags = spec.flags;
  if (start.first_model && !flags.was_given("model")) follow(flags, *start.first_model);
  flags.first_weights = start.first_weights;
  return choose_training(flags);
}

/// Fills in what rank 0 knows of `start.checkpoint` on all ranks. Collective.
void take_over(const Session& session, const TrainingSpec& spec, Start& start) {
  comm::Communicator& ranks = *session.communicator;
  start.allreduce = ranks.gather(allreduce_of(session, spec, start.checkpoint)).front();
  const auto choice = [&](const char* flag, bool given, std::string_view standard,
                          const char* done) {
    return ranks.gather(choice_of(session, start, flag, given, standard, done)).front();
  };
  const TrainingFlags& flags = spec.flags;
  start.exif = value_named<data::Exif>(
      choice("exif", flags.exif.has_value(), word_of(data::Exif::apply), "read"));
  start.resize = value_named<data::Resize>(
      choice("resize", flags.resize.has_value(), word_of(spec.resize.way), "resized"));
  start.fit = fit_named(choice("fit", flags.fit.has_value(), to_text(spec.resize.fit), "resized"));
  find_first_weights(start);
  read_first_weights(ranks.gather(first_weights_in_lines(start)).front(), start);
}

Start choose_newest(const Session& session, const TrainingSpec& spec,
                    const std::filesystem::path& folder) {
  const bool finished = runfiles::is_finished(folder);
  Start start;
  start.checkpoint = newest_whole(session, folder);
  if (finished) find_first_weights(start);
  start.finished = finished &&
                   is_at_its_end(folder, start.checkpoint, with_first_weights(start, spec)) &&
                   system::is_present(folder / kWeightsName);
  if (start.finished) return start;
  start.goes_on = !start.checkpoint.empty();
  if (finished && !start.goes_on) {
    fail(ExitCode::usage,
         "--resume auto: the training in {} is finished and left no checkpoint (it would be made "
         "anew and lost); take --weights {} in another folder to train on, or --overwrite",
         folder.string(), (folder / kWeightsName).string());
  }
  if (!start.goes_on && holds_run(folder)) {
    say(session, "No checkpoint in {}: the training begins anew", folder.string());
  }
  return start;
}

/// Going on in the checkpoint's own run would throw away what came after it.
void check_folder(const std::filesystem::path& checkpoint, const RunFolder& folder) {
  if (!folder.has(checkpoint)) {
    if (!holds_run(folder.path)) return;
    fail(ExitCode::usage,
         "--resume {}: --out {} holds another run (the two would mix); name another folder",
         checkpoint.string(), folder.path.string());
  }
  const auto all = checkpoint::list(folder.path);
  if (all.empty() || all.front().step <= checkpoint::read_progress(checkpoint).steps) return;
  fail(ExitCode::usage,
       "--resume {}: {} in its folder is newer (it would be lost); name another folder with --out, "
       "or move the newer ones away",
       checkpoint.string(), all.front().folder.filename().string());
}

/// Where a link leads to. One that leads nowhere was made of a checkpoint that newer ones replaced.
std::filesystem::path followed(const std::filesystem::path& checkpoint) {
  std::error_code error;
  if (!std::filesystem::is_symlink(checkpoint, error)) return checkpoint;
  const std::filesystem::path real = std::filesystem::canonical(checkpoint, error);
  if (!error) return real;
  fail(ExitCode::data,
       "--resume {}: the link leads to {}, which is not there (a checkpoint goes when newer ones "
       "come); use --resume auto with the --out of the run, or link to one that is there",
       checkpoint.string(), std::filesystem::read_symlink(checkpoint, error).string());
}

void check_is_folder(const std::filesystem::path& checkpoint) {
  if (!system::is_folder(checkpoint)) {
    fail(ExitCode::data,
         "--resume {}: there is no such folder (nothing can go on from it); name a folder "
         "ckpt-<step>, or auto",
         checkpoint.string());
  }
  if (checkpoint::list(checkpoint).empty()) return;
  fail(ExitCode::usage,
       "--resume {0}: it is the folder of a run, not of a checkpoint; use --resume auto --out {0}",
       checkpoint.string());
}

Start choose_named(const TrainingSpec& spec, const RunFolder& folder) {
  std::filesystem::path checkpoint = spec.flags.safety.resume;
  if (!checkpoint.has_filename()) checkpoint = checkpoint.parent_path();  // "DIR/"
  checkpoint = followed(checkpoint);
  check_is_folder(checkpoint);
  const std::string fault = resume_fault_of(checkpoint);
  if (!fault.empty()) {
    fail(ExitCode::data,
         "--resume {}: {} (nothing can go on from it); name another checkpoint, a folder "
         "ckpt-<step>, or use --resume auto",
         checkpoint.string(), fault);
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
    warn(session, "checkpoint {} is passed over: {}", found.folder.filename().string(), fault);
    damaged.push_back(found);
  }
  if (damaged.empty()) return {};
  fail(ExitCode::data,
       "of {} in {} none can be gone on from, see above (a training that began anew would take "
       "their place); mend what keeps them from being read, or begin anew with --overwrite",
       counted(damaged.size(), "checkpoint"), folder.string());
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

TrainingSpec with_choices_of(const Start& start, TrainingSpec spec) {
  spec = with_first_weights(start, std::move(spec));
  comm::AllreduceChoice& asked = spec.flags.allreduce;
  if (start.goes_on && !start.allreduce.empty() && asked == comm::AllreduceChoice{}) {
    asked = comm::parse_allreduce(start.allreduce);
  }
  if (!spec.flags.exif) spec.flags.exif = start.exif;
  if (!spec.flags.resize) spec.flags.resize = start.resize;
  if (!spec.flags.fit) spec.flags.fit = start.fit;
  spec.resize = {spec.flags.resize.value_or(spec.resize.way),
                 spec.flags.fit.value_or(spec.resize.fit)};
  return spec;
}

}  // namespace cputrain::training
