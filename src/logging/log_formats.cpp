// The table of logs in other programs' formats, and that of tf_cnn_benchmarks.

#include <cmath>
#include <numeric>

#include "core/statistics/statistics.h"
#include "logging/reporters.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::logging {
namespace {

/// Its formulas: batch / mean of times; the standard deviation of speeds by the root of their
/// number; 1.4826 medians of distances from the median.
std::string speed_text(const std::vector<double>& speeds, double images, double seconds) {
  const auto n = static_cast<double>(speeds.size());
  const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / n;
  double squares = 0;
  std::vector<double> distances;
  const double middle = median(speeds);
  for (const double speed : speeds) {
    squares += (speed - mean) * (speed - mean);
    distances.push_back(std::abs(speed - middle));
  }
  return fmt::format("images/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})", images / seconds,
                     std::sqrt(squares / n) / std::sqrt(n), 1.4826 * median(distances));
}

/// The lines of tf_cnn_benchmarks that people's scripts look for: images/sec with its spread every
/// so many steps, and the total in the end. The first step, which touches memory first, and those
/// in which kernels are tried are warm-up and left out, as its own warm-up is.
class BenchmarkLines final : public RunReporter {
 public:
  BenchmarkLines(std::FILE* stream, const RunFacts& facts, std::size_t every)
      : stream_(stream), every_(std::max<std::size_t>(every, 1)) {
    const std::size_t ranks = static_cast<std::size_t>(facts.ranks);
    const std::size_t least = facts.batch / ranks, most = (facts.batch + ranks - 1) / ranks;
    line("Model:       {}", facts.model);
    line("Dataset:     {}", facts.data);
    line("Mode:        training");
    line("Batch size:  {} global", facts.batch);
    line("             {} per rank",
         least == most ? fmt::format("{}", most) : fmt::format("{}..{}", least, most));
    line("Num batches: {}", facts.steps);
    line("Num epochs:  {:.2f}", facts.epochs);
    line("Devices:     {}", facts.platform);
    line("Data format: NHWC");
    line("Optimizer:   {}", facts.optimizer);
    line("Variables:   replicated");
    line("AllReduce:   {}", facts.allreduce.empty() ? "None" : facts.allreduce);
    line("==========");
  }

  void step(const loop::StepRecord& r) override {
    if (std::exchange(cold_, false) || r.trying || r.skipped) return;
    if (speeds_.empty()) line("Done warm up\nStep\tImg/sec\ttotal_loss");
    speeds_.push_back(r.tally.images / r.seconds);
    images_ += r.tally.images;
    seconds_ += r.seconds;
    if (speeds_.size() != 1 && speeds_.size() % every_ != 0) return;
    line("{}\t{}\t{:.3f}", speeds_.size(), speed_text(speeds_, images_, seconds_),
         r.tally.mean_loss());
  }

  void summary(const SummaryRecord& r) override {
    const std::string rule(64, '-');
    if (seconds_ > 0) line("{}\ntotal images/sec: {:.2f}\n{}", rule, images_ / seconds_, rule);
    if (!r.result.last || !r.result.last->validation) return;
    const compute::Tally& tally = *r.result.last->validation;
    if (!tally.is_number()) return;
    const auto top_five = tally.top_five();
    line("Accuracy @ 1 = {:.4f}{} [{:.0f} examples]", *tally.accuracy(),
         top_five ? fmt::format(" Accuracy @ 5 = {:.4f}", *top_five) : "", tally.images);
  }

 private:
  template <class... T>
  void line(fmt::format_string<system::Formatted<T>...> format, const T&... values) {
    system::put(stream_, system::formatted(format, values...) + "\n");
  }

  std::FILE* stream_;
  std::size_t every_;
  bool cold_ = true;
  std::vector<double> speeds_;  ///< images a second, by step
  double images_ = 0, seconds_ = 0;
};

constexpr LogFormat kFormats[] = {
    {"mlperf", "mlperf.log",
     [](const std::filesystem::path& folder, const RunFacts& facts, const LogPlace& place,
        std::size_t, system::WriteQueue* queue) {
       return mlperf_reporter(folder / "mlperf.log", facts, place, queue);
     }},
    {"tf_cnn_benchmarks", nullptr,
     [](const std::filesystem::path&, const RunFacts& facts, const LogPlace&, std::size_t log_every,
        system::WriteQueue*) -> std::unique_ptr<RunReporter> {
       return std::make_unique<BenchmarkLines>(stdout, facts, log_every);
     }},
};

}  // namespace

std::span<const LogFormat> log_formats() { return kFormats; }

std::vector<std::string> log_format_words() {
  std::vector<std::string> words;
  for (const LogFormat& format : kFormats) words.emplace_back(format.word);
  return words;
}

std::vector<std::string> log_format_files() {
  std::vector<std::string> files;
  for (const LogFormat& format : kFormats) {
    if (format.file) files.emplace_back(format.file);
  }
  return files;
}

}  // namespace cputrain::logging
