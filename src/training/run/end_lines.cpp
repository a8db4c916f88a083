#include "training/run/end_lines.h"

#include <fmt/format.h>

#include "core/text.h"
#include "logging/console.h"
#include "training/run/run_folder.h"

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
  const std::string last =
      last_is_best ? "of the last step, in the best epoch" : "of the last step";
  const bool hint = best > 0 && !last_is_best && !end.keeps_best;
  return last + (hint ? "; --save-best keeps the best epoch's, too" : "");
}

std::string best_weights_line(const RunEnd& end) {
  const int best = end.summary.result.progress.best.epoch;
  return best > 0 ? fmt::format("Best weights: {} (of epoch {})", (end.folder / kBestName).string(),
                                best)
                  : fmt::format("Best weights: none, no epoch was evaluated{}",
                                end.summary.result.stopped ? " yet" : "");
}

std::string memory_line(const loop::PeakMemory& memory) {
  const auto bytes = [](std::uint64_t count) { return bytes_text(static_cast<double>(count)); };
  const std::string device =
      memory.device_bytes ? fmt::format(", {} of its device", bytes(*memory.device_bytes)) : "";
  return fmt::format(
      "Memory at its peak: {} of one rank, files that it maps included{}; {} on host {}, without "
      "files and with shared memory counted once",
      bytes(memory.rank_bytes), device, bytes(memory.node_bytes), memory.host);
}

constexpr double kWorthALine = 0.02, kMostShare = 0.999;

/// Why there are no more of them, and what to try.
std::string remedy(const ImageWait& wait) {
  const std::string bytes = bytes_text(static_cast<double>(wait.bytes));
  switch (wait.source) {
    case ImageSource::decoders:
      return fmt::format(
          "they are decoded whenever they are needed, some {:.0f} a second with no steps beside "
          "it. Try {}, more cores, or a packed file (data pack)",
          wait.decoded,
          wait.asked ? "--cache auto, which keeps " + bytes + " in memory or on disk"
                     : "a TMPDIR with room for " + bytes);
    case ImageSource::disk:
      return fmt::format(
          "the file in {} gave {:.0f}. Try a TMPDIR on a quicker disk, or more memory{}",
          wait.folder, wait.got,
          wait.decoded > wait.wanted()
              ? fmt::format("; or --cache none, which decodes some {:.0f} a second with no steps "
                            "beside it",
                            wait.decoded)
              : "");
    case ImageSource::packed_file:
      return fmt::format("the packed file gave {:.0f}. Try a quicker disk, or more memory",
                         wait.got);
  }
  return "";
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
  if (summary.memory) lines.push_back(memory_line(*summary.memory));
  lines.push_back(fmt::format("Run folder: {}", end.folder.string()));
  if (!end.limit.empty()) lines.push_back(end.limit);
  if (!end.lost.empty()) lines.push_back("Lost: " + end.lost);
  const runfiles::ProgramSeconds& s = summary.program;
  lines.push_back(fmt::format(
      "Program: {:.1f} s (start-up {:.1f}, training {:.1f}, evaluation {:.1f}, other {:.1f})",
      s.all, s.start_up, s.training, s.evaluation, s.other()));
  return lines;
}

std::string input_limit(const ImageWait& wait) {
  if (wait.share < kWorthALine || wait.share > kMostShare) return "";
  return fmt::format(
      "Limit: images. Steps waited {:.0f} % of the last epoch for them, and would take {:.0f} a "
      "second; {}",
      100 * wait.share, wait.wanted(), remedy(wait));
}

std::string input_limit(const Training& training, const loop::TrainResult& result) {
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
       .source = packed                ? ImageSource::packed_file
                 : data.folder.empty() ? ImageSource::decoders
                                       : ImageSource::disk,
       .folder = data.folder,
       .asked = spec.flags.cache == ImageCache::none,
       .bytes = session.services.data.cache_size(training.source(), image_form(spec)).bytes});
}

}  // namespace cputrain::training
