#include "logging/log_file.h"
#include "logging/reporters.h"
#include "runfiles/metrics.h"

namespace cputrain::logging {
namespace {

using runfiles::Figures;

Figures figures_of(const compute::Tally& tally) {
  return {tally.mean_loss(), tally.accuracy(), tally.top_five()};
}

std::optional<Figures> figures_of(const std::optional<compute::Tally>& tally) {
  return tally ? std::optional(figures_of(*tally)) : std::nullopt;
}

runfiles::EpochLine line_of(const loop::EpochRecord& r) {
  runfiles::EpochLine line{
      .epoch = r.epoch,
      .steps = r.steps,
      .images = static_cast<std::uint64_t>(r.train.images),
      .seconds = r.seconds,
      .train = figures_of(r.train),
      .validation = figures_of(r.validation),
      .averaged = figures_of(r.averaged),
      .validation_images = r.validation ? static_cast<std::uint64_t>(r.validation->images) : 0,
      .validation_seconds = r.validation_seconds,
      .learning_rate = r.learning_rate,
      .budget = r.budget,
      .settled = r.settled,
      .straggler = r.straggler,
      .taken = r.taken,
      .skipped = r.skipped,
      .from_features = static_cast<std::uint64_t>(r.from_features),
      .kernels = r.kernels};
  for (const auto& figures : {std::optional(line.train), line.validation, line.averaged}) {
    if (figures && !figures->finite_loss()) line.nan = true;
  }
  return line;
}

/// The last epoch of a file that goes on; nothing where there is none.
std::optional<runfiles::EpochLine> last_epoch_of(const std::filesystem::path& path) {
  auto epochs = runfiles::read_metrics(path).epochs;
  return epochs.empty() ? std::nullopt : std::optional(std::move(epochs.back()));
}

class JsonLines final : public RunReporter {
 public:
  JsonLines(const std::filesystem::path& path, std::size_t log_every, const LogPlace& place,
            system::WriteQueue* queue)
      : last_epoch_(place.goes_on() ? last_epoch_of(path) : std::nullopt),
        file_(path, place.begin(), queue),
        log_every_(log_every),
        images_before_(place.progress.images) {}

  void resumed(const LogPlace& place, int ranks, const std::string& checkpoint) override {
    const loop::Progress& at = place.progress;
    file_.write_line(to_text(runfiles::ResumeLine{.step = at.steps,
                                                  .epoch = at.epochs + 1,
                                                  .made = at.begun ? at.begun->steps : 0,
                                                  .ranks = ranks,
                                                  .checkpoint = checkpoint,
                                                  .kernels = at.tuned_methods,
                                                  .left_out = at.left_out,
                                                  .lost_seconds = place.lost_seconds}));
  }

  void step(const loop::StepRecord& r) override {
    if (!is_logged(r, log_every_)) return;
    const auto seen = images_before_ + static_cast<std::uint64_t>(r.epoch_tally.images);
    runfiles::StepLine line{.step = r.step,
                            .epoch = r.epoch,
                            .images = static_cast<std::uint64_t>(r.tally.images),
                            .images_seen = seen,
                            .figures = {.accuracy = r.tally.accuracy()},
                            .learning_rate = r.learning_rate,
                            .seconds = r.seconds,
                            .skipped = r.skipped,
                            .trying = r.trying};
    if (!r.skipped) {
      line.figures.loss = r.tally.mean_loss();
      line.nan = !line.figures.finite_loss();
    }
    file_.write_line(to_text(line));
  }

  void epoch(const loop::EpochRecord& r) override {
    images_before_ += static_cast<std::uint64_t>(r.train.images);
    last_epoch_ = line_of(r);
    file_.write_line(to_text(*last_epoch_));
  }

  void summary(const SummaryRecord& r) override {
    const loop::Progress& end = r.result.progress;
    runfiles::SummaryLine line{.interrupted = r.result.stopped,
                               .steps = end.steps,
                               .epochs = end.epochs,
                               .seconds = end.seconds,
                               .training_seconds = end.training_seconds,
                               .early_stopped = r.result.early_stopped,
                               .target_accuracy = r.target_accuracy,
                               .reached = end.reached,
                               .density = r.density,
                               .weights_hash = r.weights_hash,
                               .weights = r.weights_file,
                               .program = r.program,
                               .checkpoint_seconds = r.checkpoint_seconds,
                               .training = r.training};
    if (last_epoch_) {
      line.train = last_epoch_->train;
      line.validation = last_epoch_->validation;
      line.averaged = last_epoch_->averaged;
    }
    if (end.best.epoch > 0) {
      line.best_epoch = end.best.epoch;
      line.best_loss = end.best.loss;
      line.best_accuracy = r.best_accuracy;
      if (end.best.accuracy) line.monitor = optim::Monitor::accuracy;
    }
    if (r.memory) {
      line.peak_rank_bytes = r.memory->rank_bytes;
      line.peak_node_bytes = r.memory->node_bytes;
      line.peak_device_bytes = r.memory->device_bytes;
    }
    file_.write_line(to_text(line));
  }

 private:
  std::optional<runfiles::EpochLine> last_epoch_;  ///< that has ended, of an earlier part, too
  LogFile file_;
  std::size_t log_every_;
  std::uint64_t images_before_;  ///< in epochs that have ended
};

}  // namespace

std::unique_ptr<RunReporter> json_lines_reporter(const std::filesystem::path& path,
                                                 std::size_t log_every, const LogPlace& place,
                                                 system::WriteQueue* queue) {
  return std::make_unique<JsonLines>(path, log_every, place, queue);
}

}  // namespace cputrain::logging
