#include "run/run_results.h"

#include <fmt/format.h>

#include <utility>

#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "job/peak_memory.h"
#include "run/recipe_lines.h"
#include "run/run_folder.h"
#include "system/tell.h"

namespace cputrain::run {
namespace {

std::string memory_line(const logging::PeakMemory& memory) {
  std::string text =
      fmt::format("Memory at its peak: {} on host {}, shared memory counted once; {} of one rank",
                  bytes_text(memory.node_bytes), memory.host, bytes_text(memory.rank_bytes));
  if (memory.device_bytes) {
    text += fmt::format(", and {} of its device", bytes_text(*memory.device_bytes));
  }
  return text;
}

}  // namespace

RunResults::RunResults(job::TrainingJob& job, std::filesystem::path folder,
                       const nlohmann::ordered_json& identity)
    : job_(job), folder_(std::move(folder)), identity_(json_text(identity)) {
  std::error_code ignored;
  has_earlier_ = job_.session().leads() && std::filesystem::exists(weights_path(), ignored);
}

std::filesystem::path RunResults::weights_path() const { return folder_ / kWeightsName; }

std::string RunResults::with_earlier(const std::string& what) const {
  if (!has_earlier_) return what;
  return fmt::format("{}; {} is still of the run before this one", what, weights_path().string());
}

void RunResults::say_earlier() const {
  if (!has_earlier_) return;
  job::say(job_.session(),
           fmt::format("Weights of an earlier run stay in {} until this one has saved its own",
                       weights_path().string()));
}

void RunResults::save_now() {
  // A terminal that this process shares with a shell stays as it is.
  if (job_.session().services.launcher.present()) system::never_wait_for_readers();
  if (!job_.session().leads()) return;
  const std::lock_guard lock(saving_);
  if (saved_) return;
  try {
    job_.save_at_once(weights_path());
    has_earlier_ = false;
    system::tell(fmt::format(
        "cputrain: weights of the last completed step are in {}; finishing the step, to end",
        weights_path().string()));
  } catch (const Error& error) {
    system::tell(fmt::format("cputrain: {}", with_earlier(error.what())));
  }
}

void RunResults::finish(const train::TrainResult& result, logging::Reporter& reporter) {
  const job::Session& session = job_.session();
  const auto memory = job::measure_peaks(job_);
  if (!session.leads()) return;
  const std::lock_guard lock(saving_);
  job_.save(weights_path());
  saved_ = true;
  has_earlier_ = false;
  const auto target = job_.plan().spec.flags.target_accuracy;
  reporter.summary({.outcome = result.stopped ? "interrupted" : "finished",
                    .steps = result.steps,
                    .epochs = result.epochs,
                    .seconds = result.seconds,
                    .training_seconds = result.training_seconds,
                    .last = result.last,
                    .target_accuracy = target,
                    .reached = result.reached,
                    .best_epoch = result.best.epoch,
                    .best_loss = result.best.loss,
                    .early_stopped = result.early_stopped,
                    .memory = memory,
                    .weights_hash = train::weights_hash(*job_.compiled().program, job_.weights()),
                    .weights_file = weights_path().string(),
                    .training = identity_});
  if (target) job::say(session, accuracy_line(result, *target));
  if (memory) job::say(session, memory_line(*memory));
  job::say(session, fmt::format("Weights: {}", weights_path().string()));
  job::say(session, fmt::format("Run folder: {}", folder_.string()));
}

}  // namespace cputrain::run
