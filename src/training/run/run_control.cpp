#include "training/run/run_control.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "checkpoint/folder.h"
#include "core/error.h"
#include "core/version.h"
#include "loop/replicas.h"
#include "system/files.h"
#include "training/run/resume.h"
#include "training/run/run_logs.h"

namespace cputrain::training {
namespace {

/// The least that a checkpoint costs, as bytes: some fsyncs, each of some milliseconds.
constexpr std::size_t kLeastBytes = 25'000'000;

/// Whether the checkpoint has the best weights so far. Without them a file in the run's folder may
/// be of an epoch that is to be made anew: it goes where others are to take its place.
bool restore_best(const std::filesystem::path& run, const std::filesystem::path& checkpoint,
                  bool replaced) {
  const std::filesystem::path from = checkpoint / kBestName, to = run / kBestName;
  std::error_code ignored;
  const bool known = system::is_present(from);
  if (known) {
    system::copy_durably(from, to);
  } else if (replaced) {
    std::filesystem::remove(to, ignored);
  }
  return known;
}

/// Says why the search begins anew: they were not kept, or were the best by another figure.
void say_begins_anew(const Session& session, const loop::BestEpoch& best, bool kept,
                     const SafetyFlags& safety) {
  const auto before = best.accuracy ? optim::Monitor::accuracy : optim::Monitor::loss;
  const std::string why = kept ? fmt::format("chosen by {}", word_of(before)) : "not kept";
  const std::string what =
      kept ? fmt::format("--monitor {}", word_of(safety.monitor)) : std::string(kBestName);
  say_detail(session,
             "The best weights so far, of epoch {} (val_loss {:.4f}), were {}: {} begins anew with "
             "the epochs from here on",
             best.epoch, best.loss, why, what);
}

}  // namespace

RunControl::RunControl(Training& training, const RunFolder& folder, nlohmann::ordered_json identity,
                       const loop::Progress& start, bool has_best, system::WriteQueue& logs)
    : training_(training),
      safety_(training.plan().spec.flags.safety),
      folder_(folder.path),
      identity_(std::move(identity)),
      logs_(logs),
      schedule_(safety_.checkpoint_every, start,
                kLeastBytes + training.compiled().memory.ranks.front().snapshot),
      newest_step_(start.steps),
      best_on_disk_(has_best ? start.best.epoch : 0) {
  if (training.session().leads() && (safety_.takes_checkpoints() || safety_.keeps_best())) {
    writer_ = std::make_unique<checkpoint::WriterThread>(bind_to_communication(training.session()));
  }
}

bool RunControl::stop_requested() { return training_.session().services.signals->stop_requested(); }

bool RunControl::checkpoint_due(const loop::Progress& progress) {
  if (writer_ && !writer_->busy()) schedule_.written(writer_->wait().cpu_seconds);
  return schedule_.due(progress, watch_.seconds()) && can_take(progress);
}

/// Steps wait a moment for what is being written, so that marks of steps are kept. Storage that
/// takes longer delays what is written, and no step, until it was free once.
bool RunControl::comes_free() {
  constexpr double kPatience = 5, kPiece = 0.5;
  const system::Stopwatch watch;
  while (writer_ && !waits_ && writer_->busy() && watch.seconds() < kPatience) {
    training_.session().communicator->pulse().moved();  // it is no stall
    writer_->wait_for(kPiece);
  }
  waits_ = writer_ && writer_->busy();
  return !waits_;
}

bool RunControl::can_take(const loop::Progress& progress) {
  const system::Stopwatch watch;
  const bool free = comes_free();
  blocked_ += watch.seconds();
  if (std::exchange(told_wait_, !free) || free) return free;
  warn(training_.session(),
       "the checkpoint of step {} waits: that of step {} is not on disk after {:.0f} s (storage is "
       "slow or does not answer); the training goes on",
       progress.steps, kept_step_.value_or(0), since_kept_.seconds());
  return false;
}

std::vector<watch::Writing> RunControl::writings() const {
  if (!writer_) return {};
  return {{"a checkpoint", &writer_->meter()}};
}

std::string RunControl::newest() const {
  const std::uint64_t step = newest_step_;
  return step > 0 && safety_.takes_checkpoints() ? checkpoint::name_of(step) : "";
}

std::string RunControl::await_newest(double seconds, const std::filesystem::path& folder) {
  constexpr double kLogsAtLast = 0.5;  // seconds that lines have to be written
  if (writer_) writer_->wait_for(seconds);
  logs_.wait_for(kLogsAtLast);
  std::string name = newest();
  if (!training_.session().leads() && safety_.takes_checkpoints()) {
    const auto found = checkpoint::list(folder);
    name = found.empty() ? "" : found.front().folder.filename().string();
  }
  if (name.empty()) return "there is no whole checkpoint of this training";
  return fmt::format("the newest whole checkpoint is {}, and --resume auto goes on from it", name);
}

void RunControl::at_checkpoint(const loop::Progress& progress) {
  training_.session().communicator->pulse().at(comm::Phase::checkpoint, progress.steps);
}

/// Waits for what is being written, and looks what became of it.
void RunControl::settle() {
  if (!writer_) return;
  comm::Pulse& pulse = training_.session().communicator->pulse();
  const checkpoint::WriterState state = writer_->wait([&pulse] { pulse.moved(); });
  schedule_.written(state.cpu_seconds);
  const bool told = failure_ == state.failure;
  failure_ = state.failure;
  if (failure_ && !told) {
    warn(training_.session(), "no checkpoint: {}; the training goes on", *failure_);
  }
  if (best_failure_.empty()) return;
  warn(training_.session(), "the best weights are not kept: {}", best_failure_);
  best_failure_.clear();
}

/// The same between steps, where a failure may end the training.
void RunControl::settle_or_stop() {
  settle();
  if (failure_ && safety_.on_checkpoint_failure == CheckpointFailure::stop)
    fail(ExitCode::output, *failure_);
}

void RunControl::take_checkpoint(const loop::Progress& progress) {
  const system::Stopwatch watch;
  at_checkpoint(progress);
  settle_or_stop();
  keep(progress);
  blocked_ += watch.seconds();
  schedule_.taken(progress, watch_.seconds(), watch.seconds());
}

void RunControl::begin_with_checkpoint(const loop::Progress& progress) {
  take_checkpoint(progress);
  settle_or_stop();
}

/// Replicas that drifted apart must not become what a resume goes on from. Where all ranks compute
/// with one copy there is nothing to compare.
void RunControl::compare_replicas(const loop::Progress& progress) {
  const Session& session = training_.session();
  const loop::Parts& parts = training_.parts();
  if (session.nodes.nodes() == 1 && parts.exchange.memory().own_weights == 0) return;
  loop::check_replicas(parts, progress.steps, session.plan.hosts());
}

void RunControl::keep(const loop::Progress& progress) {
  compare_replicas(progress);
  training_.snapshot().take(progress);
  kept_step_ = progress.steps;
  since_kept_ = {};
  if (!writer_) return;
  const Session& session = training_.session();
  nlohmann::ordered_json facts{{"cputrain", kVersion},
                               {"ranks", session.communicator->size()},
                               {"nodes", session.nodes.nodes()},
                               {"backend", session.backend->facts().description},
                               {"allreduce", training_.compiled().allreduce},
                               {"training", identity_}};
  const auto marks = std::make_shared<std::future<nlohmann::ordered_json>>(mark_logs());
  writer_->start([this, progress, facts = std::move(facts), marks] {
    write(progress, facts, std::move(*marks));
  });
}

/// How long the logs are once all lines up to now are written, and none after them.
std::future<nlohmann::ordered_json> RunControl::mark_logs() {
  const auto marks = std::make_shared<std::promise<nlohmann::ordered_json>>();
  logs_.post([marks, folder = folder_] { marks->set_value(log_marks(folder)); });
  return marks->get_future();
}

/// On the writer's thread.
void RunControl::write(const loop::Progress& progress, nlohmann::ordered_json facts,
                       std::future<nlohmann::ordered_json> marks) {
  const loop::FaultPoint& fault_point = training_.session().services.fault_point;
  if (fault_point) fault_point({.phase = comm::Phase::checkpoint, .step = progress.steps});
  // A killed process gives the run's lock back before that of what it was writing: at the start its
  // temporary folder may still have looked alive.
  checkpoint::remove_abandoned(folder_);
  try {
    facts["logs"] = marks.get();
  } catch (const std::future_error&) {
    fail(ExitCode::output, "a log could not be written before the checkpoint of step " +
                               std::to_string(progress.steps));
  }
  checkpoint::Writer writer(folder_, progress.steps);
  training_.snapshot().write(writer.folder(), training_.description(), facts);
  if (progress.best.epoch > 0 && progress.best.epoch == best_on_disk_) {
    add_best(writer.folder(), progress.best.epoch);
  }
  sync_logs(folder_);  // where the checkpoint is, the lines of its steps are, too
  writer.commit();
  ++written_;
  newest_step_ = progress.steps;
  best_checkpoint_ = checkpoint::folder_of(folder_, progress.steps);
  best_epoch_ = progress.best.epoch;
  checkpoint::prune(folder_, progress.steps, safety_.keep);
}

/// The best weights so far: those of the checkpoint before, where they are the same, at no cost.
/// They are no link to the run's, which may be written into, or taken away.
void RunControl::add_best(const std::filesystem::path& folder, int epoch) {
  std::error_code error = std::make_error_code(std::errc::not_supported);
  if (best_epoch_ == epoch) {
    std::filesystem::create_hard_link(best_checkpoint_ / kBestName, folder / kBestName, error);
  }
  if (!error) return;
  if (std::filesystem::exists(folder_ / kBestName)) {
    system::copy_durably(folder_ / kBestName, folder / kBestName);
  } else {
    best_on_disk_ = 0;
    best_failure_ = (folder_ / kBestName).string() + " is gone";
  }
}

void RunControl::stopping(const loop::Progress& progress) {
  if (!safety_.takes_checkpoints()) return;
  at_checkpoint(progress);
  settle();
  keep(progress);
  settle();
}

void RunControl::best_weights(const loop::Progress& progress) {
  const system::Stopwatch watch;
  at_checkpoint(progress);
  checkpoint::Snapshot& snapshot = training_.snapshot();
  const auto elsewhere = comes_free() ? nullptr : snapshot.memory_elsewhere();
  if (!elsewhere) settle_or_stop();
  snapshot.take_weights(elsewhere.get());
  const int epoch = progress.best.epoch;
  if (elsewhere) {
    const std::lock_guard lock(aside_mutex_);
    const bool some_wait = std::exchange(aside_, elsewhere) != nullptr;
    aside_epoch_ = epoch;
    if (!some_wait) writer_->start([this] { write_aside(); });
  } else if (writer_) {
    writer_->start([this, epoch] { write_best(epoch, nullptr); });
  }
  blocked_ += watch.seconds();
}

/// On the writer's thread, as the next.
void RunControl::write_aside() {
  std::unique_lock lock(aside_mutex_);
  const auto weights = std::exchange(aside_, nullptr);
  const int epoch = aside_epoch_;
  lock.unlock();
  write_best(epoch, weights.get());
}

/// Its failure is not that of a checkpoint.
void RunControl::write_best(int epoch, const compute::OwnedArray* weights) {
  best_on_disk_ = 0;
  try {
    training_.snapshot().write_weights(folder_ / kBestName, training_.description(), weights);
    best_on_disk_ = epoch;
  } catch (const Error& error) {
    best_failure_ = error.what();
  }
}

void RunControl::finished(const loop::Progress& progress) {
  if (!safety_.takes_checkpoints()) return;
  at_checkpoint(progress);
  settle();
  ended_ = true;
  if (kept_step_ != progress.steps) keep(progress);
}

void RunControl::finish() {
  settle();
  if (writer_ && ended_ && kept_step_ && !failure_) checkpoint::prune(folder_, *kept_step_, 1);
}

bool RunControl::has_best(const loop::BestEpoch& best) {
  settle();
  const int epoch = comm::gather_values(*training_.session().communicator, best_on_disk_).front();
  if (epoch == best.epoch) return true;
  if (writer_ && !failure_) failure_ = "the best weights are not on disk";
  return false;
}

std::filesystem::path RunControl::newest_to_go_back_to() {
  settle();
  logs_.finish();  // they are cut there
  if (!training_.session().leads()) return {};
  std::filesystem::path checkpoint = newest_whole(training_.session(), folder_);
  if (!checkpoint.empty()) return checkpoint;
  fail(ExitCode::output,
       "no checkpoint in {} can be gone back to (the gradients are NaN or infinite, and the "
       "weights may be); try a smaller --lr",
       folder_.string());
}

std::string RunControl::line() const {
  if (written_ == 0) return {};
  return fmt::format("Checkpoints: {} written, which kept the training for {:.2g} % of its time",
                     written_, 100 * blocked_ / std::max(watch_.seconds(), 1e-9));
}

bool take_up_best(const Training& training, const std::filesystem::path& run,
                  const std::filesystem::path& checkpoint, loop::Progress& progress) {
  const Session& session = training.session();
  const SafetyFlags& safety = training.plan().spec.flags.safety;
  // Where the search has just begun anew, the file is the best of before until an epoch is better.
  const bool replaced = safety.keeps_best() && progress.best.epoch > 0;
  const int mine = session.leads() && restore_best(run, checkpoint, replaced) ? 1 : 0;
  const bool known = comm::gather_values(*session.communicator, mine).front() == 1;
  if (progress.best.epoch == 0) return known;
  if (known && !safety.keeps_best()) {
    say_detail(session,
               "{} stays that of epoch {}: later ones are not compared with it with --no-save-best",
               kBestName, progress.best.epoch);
    if (progress.best.is_by(safety.monitor)) return true;
  } else if (known == safety.keeps_best() && progress.best.is_by(safety.monitor)) {
    return known;
  }
  if (safety.keeps_best()) say_begins_anew(session, progress.best, known, safety);
  progress.best = {};
  progress.patience = {};
  return known;
}

void say_missing_best(const Session& session, const std::filesystem::path& run,
                      const SafetyFlags& safety) {
  const bool wanted = safety.save_best.value_or(false) || safety.early_stopping;
  if (!session.leads() || !wanted) return;
  if (system::is_present(run / kBestName)) return;
  warn(session,
       "there is no {} in {}: the run ended without best weights; more --epochs keep those of the "
       "epochs that follow",
       kBestName, run.string());
}

}  // namespace cputrain::training
