// The lines that Keras 2 prints while fitting, digit for digit, with our own fields after them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "logging/reporters.h"
#include "system/clock.h"
#include "system/lost_time/cpu_wait.h"
#include "system/lost_time/stolen_time.h"

namespace cputrain::logging {
namespace {

/// " - name: 0.1234"; tiny values with an exponent. Keras' one-line form tests the value itself,
/// its bar the absolute value.
std::string metric(const char* name, double value, Verbosity verbosity) {
  const double tested = verbosity == Verbosity::bar ? std::abs(value) : value;
  return tested > 1e-3 ? fmt::format(" - {}: {:.4f}", name, value)
                       : fmt::format(" - {}: {:.4e}", name, value);
}

std::string tally_text(const compute::Tally& tally, const char* prefix, Verbosity verbosity) {
  std::string text = metric(fmt::format("{}loss", prefix).c_str(), tally.mean_loss(), verbosity);
  if (const auto accuracy = tally.accuracy()) {
    text += metric(fmt::format("{}accuracy", prefix).c_str(), *accuracy, verbosity);
  }
  return text;
}

std::string step_time(double seconds) {
  if (seconds >= 1 || seconds == 0) return fmt::format(" {:.0f}s/step", seconds);
  if (seconds >= 1e-3) return fmt::format(" {:.0f}ms/step", seconds * 1e3);
  return fmt::format(" {:.0f}us/step", seconds * 1e6);
}

std::string bar(std::size_t current, std::size_t target) {
  constexpr std::size_t kWidth = 30;
  const std::size_t done = kWidth * current / std::max<std::size_t>(target, 1);
  std::string text(kWidth, '.');
  std::fill_n(text.begin(), done, '=');
  if (done > 0 && current < target) text[done - 1] = '>';
  return "[" + text + "]";
}

class Console final : public Reporter {
 public:
  Console(std::FILE* stream, Verbosity verbosity, bool crowded)
      : stream_(stream), verbosity_(verbosity), crowded_(crowded) {}

  void begin_epoch(const EpochStart& start) override {
    start_ = start;
    watch_ = {};
    since_draw_ = {};
    first_step_seconds_ = 0;
    if (verbosity_ == Verbosity::silent) return;
    print(start.epochs ? fmt::format("Epoch {}/{}\n", start.epoch, *start.epochs)
                       : fmt::format("Epoch {}\n", start.epoch));
  }

  void step(const StepRecord& r) override {
    if (r.step_in_epoch == start_.made + 1) first_step_seconds_ = watch_.seconds();
    if (r.skipped) print_skipped(r.step);
    constexpr double kRedrawSeconds = 0.05;
    if (verbosity_ != Verbosity::bar || since_draw_.seconds() < kRedrawSeconds) return;
    since_draw_ = {};
    const double left = (start_.steps - r.step_in_epoch) * per_step(r.step_in_epoch);
    draw(fmt::format("{} {} - ETA: {}{}", counter(r.step_in_epoch),
                     bar(r.step_in_epoch, start_.steps), eta_text(left),
                     tally_text(r.epoch_tally, "", verbosity_)));
  }

  void epoch(const EpochRecord& r) override {
    if (verbosity_ == Verbosity::silent) return;
    std::string values = tally_text(r.train, "", verbosity_);
    if (r.validation) values += tally_text(*r.validation, "val_", verbosity_);
    for (const auto& [name, tally] : {std::pair{"top_5_accuracy", std::optional(r.train)},
                                      std::pair{"val_top_5_accuracy", r.validation}}) {
      if (tally && tally->top_five()) values += metric(name, *tally->top_five(), verbosity_);
    }
    values += fmt::format(" - img/s: {:.1f}", r.seconds > 0 ? r.train.images / r.seconds : 0);
    if (verbosity_ == Verbosity::bar) {
      draw(fmt::format("{} {} - {:.0f}s{}{}", counter(r.steps), bar(r.steps, start_.steps),
                       r.seconds, step_time(per_step(r.steps)), values));
      print("\n");
    } else {
      print(fmt::format("{} - {:.0f}s{}\n", counter(r.steps), r.seconds, values));
    }
    if (r.straggler) print_straggler(*r.straggler, r.seconds);
    print_stolen(r.stolen.value_or(0));
    print_cpu_wait(r.cpu_wait.value_or(0));
  }

  void summary(const SummaryRecord& r) override {
    if (verbosity_ == Verbosity::silent || !r.early_stopped) return;
    print(fmt::format("Early stopping: val_loss was best in epoch {} ({:.4f})\n", r.best_epoch,
                      r.best_loss));
  }

 private:
  void print_skipped(std::uint64_t step) {
    if (verbosity_ == Verbosity::silent) return;
    print(fmt::format("{}Warning: step {} was skipped: its gradients were no numbers\n",
                      drawn_ > 0 ? "\n" : "", step));
  }

  void print_straggler(const Straggler& s, double seconds) {
    constexpr double kWorthALine = 0.1;
    if (s.seconds < kWorthALine * seconds) return;
    print(fmt::format(
        "Straggler: the other ranks waited {:.1f} s ({:.0f} % of the epoch) for rank {} "
        "on {}\n",
        s.seconds, 100 * s.seconds / seconds, s.rank, escaped(s.host)));
  }

  void print_stolen(double part) {
    if (part < system::kStolenWorthSaying) return;
    print(fmt::format("Steal: {:.0f} % of a rank's CPU time went to others on its host\n",
                      100 * part));
  }

  void print_cpu_wait(double part) {
    if (part < system::kWaitWorthSaying) return;
    print(fmt::format("Busy: threads of a rank waited {:.0f} % of their time for a CPU ({})\n",
                      100 * part, system::cpu_wait_reason(crowded_)));
  }

  std::string counter(std::size_t current) const {
    const std::string target = std::to_string(start_.steps);
    return fmt::format("{:>{}}/{}", current, target.size(), target);
  }

  /// Seconds a step since the first one that was made here, as Keras counts (it warms up).
  double per_step(std::size_t steps) const {
    const std::size_t here = steps - std::min(steps, start_.made);
    if (here <= 1) return watch_.seconds();
    return (watch_.seconds() - first_step_seconds_) / static_cast<double>(here - 1);
  }

  /// Replaces the line that is being redrawn.
  void draw(const std::string& line) {
    const std::size_t old = drawn_ > line.size() ? drawn_ - line.size() : 0;
    print("\r" + line + std::string(old, ' '));
    drawn_ = line.size();
  }

  void print(const std::string& text) {
    if (text.ends_with('\n')) drawn_ = 0;
    std::fputs(text.c_str(), stream_);
    std::fflush(stream_);
  }

  std::FILE* stream_;
  Verbosity verbosity_;
  bool crowded_;
  EpochStart start_;
  system::Stopwatch watch_, since_draw_;
  double first_step_seconds_ = 0;
  std::size_t drawn_ = 0;
};

}  // namespace

std::unique_ptr<Reporter> console_reporter(std::FILE* stream, Verbosity verbosity, bool crowded) {
  return std::make_unique<Console>(stream, verbosity, crowded);
}

}  // namespace cputrain::logging
