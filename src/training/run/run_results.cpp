#include "training/run/run_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

#include "core/casts.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "runfiles/lost_seconds.h"
#include "runfiles/metrics.h"
#include "system/print.h"
#include "system/usage/work_meter.h"
#include "training/run/run_folder.h"
#include "weights/load.h"

namespace cputrain::training {
namespace {

std::string target_line(const loop::Progress& progress, double target) {
  if (!progress.reached) {
    return fmt::format("Target accuracy {:g}: not reached in {}", target,
                       counted(progress.epochs, "epoch"));
  }
  const loop::TimeToAccuracy& reached = *progress.reached;
  return fmt::format("Target accuracy {:g}: {:.4f} after epoch {} and {:.1f} s of training", target,
                     reached.accuracy, reached.epoch, reached.seconds);
}

std::string best_line(const logging::SummaryRecord& summary) {
  const loop::Progress& progress = summary.result.progress;
  const std::string accuracy =
      summary.best_accuracy ? fmt::format(", val_accuracy {:.4f}", *summary.best_accuracy) : "";
  return fmt::format("Best epoch: {} of {}{} (val_loss {}{}){}", progress.best.epoch,
                     progress.epochs, progress.best.accuracy ? " by accuracy" : "",
                     logging::figure_text(progress.best.loss), accuracy,
                     summary.result.early_stopped ? "; early stopping ended the training" : "");
}

/// Which weights weights.safetensors has.
std::string kept_text(const RunEnd& end) {
  const loop::TrainResult& result = end.summary.result;
  const int best = result.progress.best.epoch;
  if (result.early_stopped && end.kept_best) return fmt::format("of epoch {}, the best", best);
  const bool last_is_best = best > 0 && result.last && result.last->epoch == best;
  return last_is_best ? "of the last step, in the best epoch" : "of the last step";
}

std::string best_weights_line(const RunEnd& end) {
  const int best = end.summary.result.progress.best.epoch;
  return best > 0 ? fmt::format("Best weights: {} (of epoch {})", (end.folder / kBestName).string(),
                                best)
                  : fmt::format("Best weights: none, no epoch was evaluated{}",
                                end.summary.result.stopped ? " yet" : "");
}

std::string memory_line(const loop::PeakMemory& memory, bool is_alone) {
  const std::string device =
      memory.device_bytes ? fmt::format(", {} of its device", bytes_text(*memory.device_bytes))
                          : "";
  if (is_alone) {
    return fmt::format("Memory at its peak: {}, files that it maps included{}; {} without them",
                       bytes_text(memory.rank_bytes), device, bytes_text(memory.node_bytes));
  }
  return fmt::format(
      "Memory at its peak: {} of one rank, files that it maps included{}; {} on host {}, without "
      "files and with shared memory counted once",
      bytes_text(memory.rank_bytes), device, bytes_text(memory.node_bytes), memory.host);
}

constexpr double kWorthALine = 0.02, kMostShare = 0.999;

/// Why there are no more of them, and what to try.
std::string remedy(const ImageWait& wait) {
  const std::string bytes = bytes_text(wait.bytes);
  if (wait.packed) {
    return fmt::format("the packed file gave {:.0f}. Try a quicker disk, or more memory", wait.got);
  }
  if (!wait.folder.empty()) {
    return fmt::format(
        "the file in {} gave {:.0f}. Try a TMPDIR on a quicker disk, or more memory{}", wait.folder,
        wait.got,
        wait.decoded > wait.wanted()
            ? fmt::format("; or --cache none, which decodes some {:.0f} a second with no steps "
                          "beside it",
                          wait.decoded)
            : "");
  }
  return fmt::format(
      "they are decoded whenever they are needed, some {:.0f} a second with no steps beside it. "
      "Try {}, more cores, or a packed file (data pack)",
      wait.decoded,
      wait.asked ? "--cache auto, which keeps " + bytes + " in memory or on disk"
                 : "a TMPDIR with room for " + bytes);
}

runfiles::Metrics metrics_of(const std::filesystem::path& folder) {
  return runfiles::read_metrics(folder / runfiles::kMetricsName);
}

/// An epoch's val_accuracy. It may be an epoch before a resume.
std::optional<double> validation_accuracy(const std::vector<runfiles::EpochLine>& epochs,
                                          int epoch) {
  const auto found = std::ranges::find(epochs, epoch, &runfiles::EpochLine::epoch);
  return found != epochs.end() && found->validation ? found->validation->accuracy : std::nullopt;
}

/// What this rank has taken since the plan of memory that is not the host's; nothing where there is
/// none, or it is not known.
std::optional<std::size_t> taken_of_device(const Training& training) {
  const Session& session = training.session();
  const auto left = session.backend->memory().available();
  if (session.backend->memory().is_host() || !left) return std::nullopt;
  for (const NodeCapacity& capacity : training.compiled().memory.capacities) {
    const bool own =
        std::ranges::find(capacity.ranks, session.communicator->rank()) != capacity.ranks.end();
    if (own && capacity.backend_available) {
      return *capacity.backend_available - std::min(*capacity.backend_available, *left);
    }
  }
  return std::nullopt;
}

/// The most that ranks and nodes have held; nothing where a system does not report it.
std::optional<loop::PeakMemory> peaks_of(
    const std::vector<NodeCapacity>& capacities,
    const std::vector<std::optional<system::HeldMemory>>& held,
    const std::vector<std::optional<std::size_t>>& of_devices) {
  const auto is_known = [](const auto& one) { return one.has_value(); };
  if (!std::ranges::all_of(held, is_known)) return std::nullopt;
  loop::PeakMemory peaks;
  for (const NodeCapacity& capacity : capacities) {
    std::uint64_t node = 0;
    for (const int rank : capacity.ranks) {
      const auto place = static_cast<std::size_t>(rank);
      node += held[place]->part;
      peaks.rank_bytes = std::max<std::uint64_t>(peaks.rank_bytes, held[place]->peak);
      if (!of_devices[place]) continue;
      peaks.device_bytes =
          std::max<std::uint64_t>(peaks.device_bytes.value_or(0), *of_devices[place]);
    }
    if (node > peaks.node_bytes) {
      peaks.node_bytes = node;
      peaks.host = capacity.host;
    }
  }
  return peaks;
}

/// input_limit() of a training's last epoch; empty where its images lie in memory.
std::string limit_of(const Training& training, const loop::TrainResult& result) {
  const data::DecodedData& data = *training.data();
  const bool packed = data.train.stored != nullptr;
  const bool in_memory = !packed && data.folder.empty() && data.not_kept == 0;
  if (in_memory || training.compiled().images_on_device) return "";
  if (!result.last || result.last->seconds <= 0) return "";
  const loop::EpochRecord& last = *result.last;
  const Session& session = training.session();
  const TrainingSpec& spec = training.plan().spec;
  return input_limit(
      {.share = last.budget.input_wait / last.seconds,
       .got = last.train.images / last.seconds,
       .decoded = data.images_per_second * session.nodes.nodes(),
       .packed = packed,
       .folder = data.folder,
       .asked = spec.flags.cache == ImageCache::none,
       .bytes = session.services.data.cache_size(training.source(), image_form(spec)).bytes});
}

}  // namespace

std::vector<std::string> end_lines(const RunEnd& end) {
  const logging::SummaryRecord& summary = end.summary;
  const loop::Progress& progress = summary.result.progress;
  const bool has_best = progress.best.epoch > 0;
  std::vector<std::string> lines;
  if (summary.target_accuracy) lines.push_back(target_line(progress, *summary.target_accuracy));
  if (has_best) lines.push_back(best_line(summary));
  lines.push_back(
      fmt::format("Weights: {} ({})", (end.folder / kWeightsName).string(), kept_text(end)));
  if (end.averages) {
    lines.push_back(fmt::format("Averaged weights: {}", (end.folder / kAveragesName).string()));
  }
  if (end.keeps_best && (end.kept_best || !has_best)) lines.push_back(best_weights_line(end));
  if (summary.memory) lines.push_back(memory_line(*summary.memory, end.is_alone));
  lines.push_back(fmt::format("Run folder: {}", end.folder.string()));
  if (!end.learned_little.empty()) lines.push_back(end.learned_little);
  if (!end.limit.empty()) lines.push_back(end.limit);
  if (!end.lost.empty()) lines.push_back("Lost: " + end.lost);
  const runfiles::ProgramSeconds& s = summary.program;
  lines.push_back(fmt::format(
      "Program: {:.1f} s (start-up {:.1f}, training {:.1f}, evaluation {:.1f}, other {:.1f})",
      s.all, s.start_up, s.training, s.evaluation, s.other()));
  return lines;
}

std::string learned_little(std::span<const runfiles::EpochLine> epochs,
                           std::span<const std::int32_t> labels) {
  constexpr std::size_t kFewest = 50;  // the accuracy of fewer images says little
  std::map<std::int32_t, std::size_t> counts;
  for (const std::int32_t label : labels) ++counts[label];
  double best = -1;
  for (const runfiles::EpochLine& line : epochs) {
    for (const auto& figures : {line.validation, line.averaged}) {
      if (figures) best = std::max(best, figures->accuracy.value_or(-1));
    }
  }
  if (best < 0 || labels.size() < kFewest || counts.size() < 2) return "";
  const double share =
      to_double(std::ranges::max(counts | std::views::values)) / to_double(labels.size());
  if (best > share) return "";
  return fmt::format(
      "Learned little: the best val_accuracy is {:.4f}, and one answer for all images has {:.4f}. "
      "More epochs or another rate may help (`cputrain tune`)",
      best, share);
}

std::string input_limit(const ImageWait& wait) {
  if (wait.share < kWorthALine || wait.share > kMostShare) return "";
  return fmt::format(
      "Limit: images. Steps waited {:.0f} % of the last epoch for them, and would take {:.0f} a "
      "second; {}",
      100 * wait.share, wait.wanted(), remedy(wait));
}

RunResults::RunResults(Training& training, std::filesystem::path folder,
                       const nlohmann::ordered_json& identity)
    : training_(training), folder_(std::move(folder)), identity_(json_text(identity)) {
  has_earlier_ = training_.session().leads() && system::is_present(weights_path());
}

std::filesystem::path RunResults::weights_path() const { return folder_ / kWeightsName; }

std::string RunResults::with_earlier(const std::string& what) const {
  if (!has_earlier_) return what;
  return fmt::format("{}; {} is still of the run before this one", what, weights_path().string());
}

void RunResults::say_earlier() const {
  if (!has_earlier_) return;
  say_detail(training_.session(),
             "Weights of an earlier run stay in {} until this one has saved its own",
             weights_path().string());
}

void RunResults::save_now(const char* then) {
  if (!training_.session().leads()) return;
  const std::lock_guard lock(saving_);
  if (saved_) return;
  const system::WorkMeter::Busy busy(saving_now_);
  try {
    training_.save_at_once(weights_path());
    has_earlier_ = false;
    system::tell("cputrain: weights of the last completed step are in {}; {}",
                 weights_path().string(), then);
  } catch (const Error& error) {
    system::tell("cputrain: {}", with_earlier(error.what()));
    return;
  }
  if (training_.plan().spec.optimizer.ema > 0) save_averages_now();
}

// Who sent the signal may wait no longer: the weights themselves are saved, and told, before this.
// A training that has come to its end meanwhile saves the averages itself.
void RunResults::save_averages_now() {
  const std::filesystem::path file = folder_ / kAveragesName;
  std::string reason = "they are not at hand until the step has ended";
  try {
    const std::unique_lock lock(averaging_, std::try_to_lock);
    if (!lock) return;
    if (training_.save_averages_at_once(file)) {
      system::tell("cputrain: averages of these weights are in {}", file.string());
      return;
    }
  } catch (const Error& error) {
    reason = error.what();
  }
  const bool earlier = system::is_present(file);
  system::tell("cputrain: averages of these weights are not saved yet ({}){}", reason,
               earlier ? fmt::format("; {} is still of weights before these", file.string()) : "");
}

void RunResults::begin_training(const loop::Progress& from) {
  if (!start_up_) start_up_ = training_.session().services.since_start.seconds();
  const double begun = from.begun ? from.begun->seconds : 0;
  seconds_before_ = from.seconds + begun;
  training_before_ = from.training_seconds + begun;
}

runfiles::ProgramSeconds RunResults::program_seconds(const loop::TrainResult& result) const {
  const double training = std::max(0.0, result.progress.training_seconds - training_before_);
  const double both = std::max(training, result.progress.seconds - seconds_before_);
  return {.all = training_.session().services.since_start.seconds(),
          .start_up = start_up_.value_or(0),
          .training = training,
          .evaluation = both - training};
}

void RunResults::finish(const loop::TrainResult& result, bool kept_best, double checkpoint_seconds,
                        logging::RunReporter& reporter, system::WriteQueue& logs) {
  const Session& session = training_.session();
  auto held = comm::gather_values(*session.communicator, system::held_memory());
  auto of_devices = comm::gather_values(*session.communicator, taken_of_device(training_));
  const bool averages = training_.plan().spec.optimizer.ema > 0;
  // All ranks save averages; where that fails, the weights themselves are saved all the same.
  std::exception_ptr no_averages;
  try {
    if (averages) {
      const std::lock_guard lock(averaging_);
      training_.save_averages(folder_ / kAveragesName);
    }
  } catch (...) {
    no_averages = std::current_exception();
  }
  if (!session.leads()) {
    if (no_averages) std::rethrow_exception(no_averages);
    return;
  }
  const std::lock_guard lock(saving_);
  const system::WorkMeter::Busy busy(finishing_);
  logs.finish();
  training_.save(weights_path());
  held.front() = system::held_memory();  // saving takes memory, too
  of_devices.front() = taken_of_device(training_);
  saved_ = true;
  has_earlier_ = false;
  const TrainingFlags& flags = training_.plan().spec.flags;
  const std::vector<runfiles::EpochLine> epochs = metrics_of(folder_).epochs;
  const logging::SummaryRecord summary{
      .result = result,
      .target_accuracy = flags.target_accuracy,
      .best_accuracy = validation_accuracy(epochs, result.progress.best.epoch),
      .memory = peaks_of(training_.compiled().memory.capacities, held, of_devices),
      .density = compute::density_of(training_.compiled().program->layer_times()),
      .program = program_seconds(result),
      .weights_hash = weights::weights_hash(*training_.compiled().program, training_.weights()),
      .weights_file = weights_path().string(),
      .checkpoint_seconds = checkpoint_seconds,
      .training = identity_};
  reporter.summary(summary);
  logs.finish();
  RunEnd end{.summary = summary,
             .folder = folder_,
             .keeps_best = flags.safety.keeps_best(),
             .kept_best = kept_best,
             .limit = limit_of(training_, result),
             .averages = averages,
             .lost = text_of(runfiles::lost_seconds(folder_, metrics_of(folder_))),
             .is_alone = session.is_alone()};
  // Where it came to its end, and accuracy is what it was for.
  if (!result.stopped && !flags.steps && !flags.class_weights.given())
    end.learned_little = learned_little(epochs, training_.data()->validation.labels);
  for (const std::string& line : end_lines(end)) say(session, line);
  if (no_averages) std::rethrow_exception(no_averages);
}

}  // namespace cputrain::training
