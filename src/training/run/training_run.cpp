#include "training/run/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "checkpoint/folder.h"
#include "checkpoint/state_file.h"
#include "core/json_text.h"
#include "core/text.h"
#include "runfiles/metrics.h"
#include "system/files.h"
#include "system/limits/process_limits.h"
#include "system/print.h"
#include "system/usage/work_meter.h"
#include "training/plan/kept_methods.h"
#include "training/run/run_control.h"
#include "training/run/run_logs.h"
#include "training/run/run_results.h"
#include "training/run/same_training.h"
#include "training/run/timeline_file.h"
#include "training/weights/named_weights.h"

namespace cputrain::training {
namespace {

/// Since a checkpoint of the run was whole; nothing where the training ended by itself, or where
/// the clock of its file system is another one. Before its logs are cut.
std::optional<double> lost_since(const std::filesystem::path& checkpoint, const RunFolder& folder) {
  std::error_code error;
  const auto whole =
      std::filesystem::last_write_time(checkpoint / checkpoint::kManifestName, error);
  if (error || runfiles::summary_at_end(folder.path / runfiles::kMetricsName)) return std::nullopt;
  const std::chrono::duration<double> since = std::filesystem::file_time_type::clock::now() - whole;
  return since.count() > 0 ? std::optional(since.count()) : std::nullopt;
}

/// Cuts the logs of the run where the checkpoint left them, if it is of this folder; how they go
/// on.
logging::LogPlace cut_to(const Session& session, const RunFolder& folder,
                         const std::filesystem::path& checkpoint) {
  if (!session.leads()) return {};
  std::optional<double> lost;
  if (folder.has(checkpoint)) {
    lost = lost_since(checkpoint, folder);
    const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
    for (const std::string& warning : cut_logs(folder.path, facts.at("logs"))) {
      warn(session, warning);
    }
  }
  return {checkpoint::read_progress(checkpoint), lost};
}

/// One training in its folder, from its plan to its end.
class Run {
 public:
  Run(Training& training, RunFolder& folder, const Start& start, nlohmann::ordered_json identity)
      : training_(training),
        session_(training.session()),
        spec_(training.plan().spec),
        folder_(folder),
        start_(start),
        identity_(std::move(identity)) {
    training_.timeline() = make_timeline(session_, spec_);
  }

  /// Trains on what is loaded; the exit code.
  ExitCode train() {
    say_plan(training_);
    for (;;) {
      if (const auto code = train_on_what_is_loaded()) return *code;
      begin_anew();
    }
  }

 private:
  /// Nothing where an image of the first epoch turned out to be damaged.
  std::optional<ExitCode> train_on_what_is_loaded() {
    add_decoded(identity_, training_);
    if (start_.goes_on) check_same_training(session_, start_.checkpoint, spec_, identity_);
    begin();
    if (start_.goes_on) say_what_changes(training_, start_.checkpoint, progress_);
    RunResults results(training_, folder_.path, identity_);
    if (!start_.goes_on) results.say_earlier();
    prepare_folder();
    say_chosen_folder();
    try {
      return train_until_done(results);
    } catch (const Error& error) {
      fail(error.code(), results.with_earlier(error.what()));
    }
  }

  /// Order and batches are those of the images that can be read: what was made of others is void.
  void begin_anew() {
    training_.load_the_rest();
    start_ = {};
    progress_ = {};
    place_ = {};
    checkpoint_.clear();
    has_best_ = false;
  }

  void begin() {
    if (start_.goes_on) {
      go_on_from(start_.checkpoint);
    } else {
      training_.start();
    }
    if (training_.compiled().program->tuner().trying()) {
      say_detail(session_, session_.device.chosen()
                               ? "Convolutions and dense layers try their tiles in the first steps"
                               : "Convolutions try their algorithms in the first steps of epochs "
                                 "1, 2, 3, 5, 9, ...");
    }
  }

  void go_on_from(const std::filesystem::path& checkpoint) {
    progress_ = training_.resume(checkpoint);
    place_ = cut_to(session_, folder_, checkpoint);
    checkpoint_ = checkpoint.filename().string();
    say(session_, "Going on from {}: {} and {} are done", checkpoint.string(),
        counted(progress_.steps, "step"), counted(progress_.epochs, "whole epoch"));
    has_best_ = take_up_best(training_, folder_.path, checkpoint, progress_);
  }

  /// Description, first-weights.csv, and limits.json: what these processors and their memory can
  /// do, measured in the same places, a moment before the training. Error(output).
  void prepare_folder() const {
    if (session_.leads()) {
      describe_run(session_, training_.plan(), folder_.path, start_.goes_on);
      const std::string& table = training_.first_weights();
      if (!start_.goes_on && !table.empty())
        system::write_own_file(folder_.path / kFirstWeightsName, table);
    }
    if (!spec_.flags.measure_limits) return;
    const compute::Limits limits = measure_together(session_);
    system::forget_peak();  // its arrays are larger than many a training
    if (!session_.leads()) return;
    system::write_own_file(folder_.path / kLimitsName, json_text(limits_json(limits), 2) + "\n");
  }

  /// A killed training has no last lines, so a folder that was not named is printed at the
  /// beginning.
  void say_chosen_folder() const {
    if (!spec_.flags.out.empty() || !spec_.flags.safety.takes_checkpoints()) return;
    say(session_,
        "This run is in {0} (after a kill, the same command with --resume auto --out {0} goes "
        "on{1})",
        folder_.path.string(), spec_.flags.overwrite ? ", without --overwrite" : "");
  }

  /// A rollback that got further than the one before counts anew.
  std::optional<ExitCode> train_until_done(RunResults& results) {
    constexpr int kMostRollbacks = 3;
    int rollbacks = 0;
    std::uint64_t place = 0;
    for (;;) {
      const loop::TrainResult result = train_on(results);
      if (is_void(result)) return std::nullopt;
      if (!result.roll_back) return code_;
      if (std::exchange(place, progress_.steps) < progress_.steps) rollbacks = 0;
      if (++rollbacks > kMostRollbacks) {
        fail(ExitCode::failed,
             "the gradients of step {} are NaN or infinite, after {} rollbacks to step {} (others "
             "would follow); try a smaller --lr, or --clip-norm",
             *result.roll_back, kMostRollbacks, place);
      }
      progress_.left_out.push_back(*result.roll_back);
    }
  }

  /// Until the training ends, or goes back: `progress_` is then where to.
  loop::TrainResult train_on(RunResults& results) {
    system::SignalWatch& signals = *session_.services.signals;
    system::WriteQueue logs(bind_to_communication(session_));
    const auto reporter = make_reporter(training_, folder_.path, place_, logs);
    if (place_.goes_on()) {
      reporter->resumed({progress_, place_.lost_seconds}, session_.communicator->size(),
                        checkpoint_);
    }
    RunControl control(training_, folder_, identity_, progress_, has_best_, logs);
    if (needs_first_checkpoint()) control.begin_with_checkpoint(progress_);
    const auto armed = signals.arm([&results] { results.save_now(); });
    results.begin_training(progress_);
    const bool shrinks = spec_.flags.safety.on_failure == RankFailure::shrink;
    auto watches_for_lost_ranks = shrinks ? end_with_lost_ranks(session_) : nullptr;
    const auto finishing = session_.watch.finish_first(
        [&control, &results](double seconds, const std::filesystem::path& folder) {
          system::tell("cputrain: " + control.await_newest(seconds, folder));
          results.save_now("the job ends");
        });
    const auto looked_after = look_after(results, control, logs);
    const loop::TrainResult result = training_.run(progress_, *reporter, control);
    if (is_void(result)) {
      warn(session_,
           "{}; after step {} the training begins anew without what is damaged, once all images "
           "are decoded (--decode first decodes them before the first step)",
           result.lost_input, result.progress.steps);
      return result;
    }
    if (result.roll_back) {
      const auto held = signals.hold();  // what SIGTERM would save is being replaced
      go_back(*result.roll_back, control);
      return result;
    }
    training_.check_replicas();
    reached(session_, comm::Phase::save);
    control.finish();
    const bool kept = take_best(result, control);
    if (session_.leads() && !control.line().empty()) say(session_, control.line());
    results.finish(result, kept, control.seconds(), *reporter, logs);
    write_timeline(session_, spec_, training_.timeline());
    keep_methods(session_, training_.plan(), *training_.compiled().program);
    watches_for_lost_ranks.reset();  // ranks may end now
    // Rank 0 knows whether all is on disk; which rank's code mpirun takes is not known.
    code_ = comm::gather_values(*session_.communicator, exit_code(result, control)).front();
    return result;
  }

  /// Whether images were trained on that damage leaves out, in the first epoch. An image that was
  /// whole before, then or later, is one that has changed: what was learnt stays.
  bool is_void(const loop::TrainResult& result) const {
    return !result.lost_input.empty() && training_.is_filling() && progress_.epochs == 0 &&
           result.progress.steps <= training_.batches().train.steps() && !has_changed_images();
  }

  /// Whether a file that some rank had read was another one by now. Collective.
  bool has_changed_images() const {
    return !first_text(session_, training_.data()->filling->has_changed() ? "changed" : "").empty();
  }

  /// While what it returns lives, storage that does not answer is told of. On rank 0.
  std::shared_ptr<void> look_after(const RunResults& results, const RunControl& control,
                                   system::WriteQueue& logs) const {
    if (!session_.leads()) return nullptr;
    std::vector<watch::Writing> writings = control.writings();
    writings.push_back({"logs", &logs.meter()});
    std::ranges::move(results.writings(), std::back_inserter(writings));
    const auto disk = std::make_shared<const system::DiskWrites>(folder_.path);
    for (watch::Writing& writing : writings) writing.disk = disk;
    return session_.watch.look_after({.folder = folder_.path,
                                      .writings = std::move(writings),
                                      .logs = &logs,
                                      .signals = session_.services.signals,
                                      .newest = [&control] { return control.newest(); }});
  }

  /// There is always one to go back to, and one in the folder that a resume looks into.
  bool needs_first_checkpoint() const {
    const SafetyFlags& safety = spec_.flags.safety;
    if (!safety.takes_checkpoints()) return false;
    return start_.elsewhere || (safety.on_nan == loop::NanPolicy::rollback && progress_.steps == 0);
  }

  void go_back(std::uint64_t step, RunControl& control) {
    const std::filesystem::path checkpoint = control.newest_to_go_back_to();
    auto left_out = progress_.left_out;
    warn(session_,
         "the gradients of step {} are NaN or infinite: back to {}, and on without that step", step,
         checkpoint.string());
    go_on_from(checkpoint);
    progress_.left_out = std::move(left_out);
  }

  /// Whether the best weights are on disk, where they are to be. Early stopping ends with them.
  bool take_best(const loop::TrainResult& result, RunControl& control) {
    if (!spec_.flags.safety.keeps_best() || result.progress.best.epoch == 0) return false;
    const bool kept = control.has_best(result.progress.best);
    if (!kept) {
      warn(session_, "the weights of epoch {}, the best, could not be kept",
           result.progress.best.epoch);
    } else if (result.early_stopped) {
      training_.load_weights(folder_.path / kBestName);
    }
    return kept;
  }

  /// 75 promises that a resume goes on from here.
  ExitCode exit_code(const loop::TrainResult& result, const RunControl& control) const {
    if (control.failure()) {
      system::tell("cputrain: the last state could not be written: {}", *control.failure());
      return ExitCode::output;
    }
    if (!result.stopped) return ExitCode::ok;
    if (!result.lost_input.empty() && session_.leads()) {
      system::tell("cputrain: {}", result.lost_input);
    }
    if (spec_.flags.safety.takes_checkpoints()) {
      say(session_, "Stopped after step {}: the same command with --resume auto --out {} goes on",
          result.progress.steps, folder_.path.string());
    }
    return result.lost_input.empty() ? static_cast<ExitCode>(session_.services.signals->stop_code())
                                     : ExitCode::data;
  }

  Training& training_;
  const Session& session_;
  const TrainingSpec& spec_;
  RunFolder& folder_;
  Start start_;
  nlohmann::ordered_json identity_;  ///< on rank 0, as checkpoints and the summary have it
  loop::Progress progress_;
  logging::LogPlace place_;
  std::string checkpoint_;  ///< the name of the one that it goes on from
  bool has_best_ = false;   ///< the run's folder has the best weights until `progress_`
  ExitCode code_ = ExitCode::ok;
};

/// Whether the training of a checkpoint leaves out damaged images.
bool leaves_out_images(const std::filesystem::path& checkpoint) {
  const nlohmann::ordered_json facts = checkpoint::read_facts(checkpoint);
  const nlohmann::ordered_json& training = facts.at("training");
  return training.contains(kDamaged) && training.at(kDamaged) != kNone;
}

/// What a checkpoint leaves out must be known before its training goes on. Threads that decode
/// beside the steps take addresses that `ulimit -v` may not leave them: each has a heap of its own.
Decoding decoding_of(const Training& training, const Start& start) {
  const Session& session = training.session();
  const bool leaves_out = start.goes_on && session.leads() && leaves_out_images(start.checkpoint);
  const int first = leaves_out || system::limits_addresses() ? 1 : 0;
  const std::vector<int> ranks = comm::gather_values(*session.communicator, first);
  return std::ranges::count(ranks, 1) > 0 ? Decoding::first : training.plan().spec.flags.decode;
}

}  // namespace

ExitCode train_in_folder(Training& training, RunFolder& folder, const Start& start,
                         nlohmann::ordered_json identity) {
  Run run(training, folder, start, std::move(identity));
  training.load(decoding_of(training, start));
  return run.train();
}

}  // namespace cputrain::training
