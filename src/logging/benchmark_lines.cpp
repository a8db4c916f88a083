// The lines of tf_cnn_benchmarks that people's scripts look for: images/sec with its spread every
// so many steps, and the total in the end. The first step, which touches memory first, and those in
// which kernels are tried are warm-up and left out, as its own warm-up is.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "core/statistics/statistics.h"
#include "logging/reporters.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::logging {
namespace {

struct Speed {
  double mean, uncertainty, jitter;
};

/// Its formulas: batch / mean of times; the standard deviation of speeds by the root of their
/// number; 1.4826 medians of distances from the median.
Speed speed_of(const std::vector<double>& speeds, double images, double seconds) {
  const auto n = static_cast<double>(speeds.size());
  const double mean = std::accumulate(speeds.begin(), speeds.end(), 0.0) / n;
  double squares = 0;
  std::vector<double> distances;
  const double middle = median(speeds);
  for (const double speed : speeds) {
    squares += (speed - mean) * (speed - mean);
    distances.push_back(std::abs(speed - middle));
  }
  return {images / seconds, std::sqrt(squares / n) / std::sqrt(n), 1.4826 * median(distances)};
}

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
    const Speed speed = speed_of(speeds_, images_, seconds_);
    line("{}\timages/sec: {:.1f} +/- {:.1f} (jitter = {:.1f})\t{:.3f}", speeds_.size(), speed.mean,
         speed.uncertainty, speed.jitter, r.tally.mean_loss());
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

}  // namespace

std::unique_ptr<RunReporter> benchmark_lines_reporter(std::FILE* stream, const RunFacts& facts,
                                                      std::size_t every) {
  return std::make_unique<BenchmarkLines>(stream, facts, every);
}

}  // namespace cputrain::logging
