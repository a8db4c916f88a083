// Keras' lines and the bar on a terminal, and lines of progress where there is none.

#include <algorithm>

#include "core/text.h"
#include "logging/reporters.h"
#include "system/clock.h"
#include "system/lost_time.h"
#include "system/output.h"
#include "system/print.h"

namespace cputrain::logging {
namespace {

constexpr std::size_t kWidth = 30;      // Keras' bar's
constexpr std::size_t kLeastWidth = 8;  // with fewer signs it tells less than the counter
constexpr std::size_t kBesideBar = 3;   // a blank and two brackets

std::string bar(std::size_t step, std::size_t steps, std::size_t width) {
  const std::size_t done = width * std::min(step, steps) / std::max<std::size_t>(steps, 1);
  std::string text(width, '.');
  std::fill_n(text.begin(), done, '=');
  if (done > 0 && step < steps) text[done - 1] = '>';
  return " [" + text + "]";
}

/// Nothing where even the narrowest bar does not fit beside so many columns.
std::optional<std::size_t> bar_width(std::size_t beside, std::optional<std::size_t> space) {
  const std::size_t needed = beside + kBesideBar + kLeastWidth;
  if (!space) return kWidth;
  if (needed > *space) return std::nullopt;
  return std::min(kWidth, kLeastWidth + *space - needed);
}

/// " 12/140": as wide for every step.
std::string step_counter(std::size_t step, std::size_t steps) {
  const std::string all = std::to_string(steps);
  return fmt::format("{:>{}}/{}", step, all.size(), all);
}

/// " - name: 0.1234"; tiny values with an exponent. Keras' one-line form tests the value itself,
/// its bar the absolute value.
std::string metric(const char* name, double value, Verbosity verbosity) {
  const bool negative = verbosity == Verbosity::bar && value < 0;
  return fmt::format(" - {}: {}{}", name, negative ? "-" : "",
                     figure_text(negative ? -value : value));
}

std::string loss_text(const compute::Tally& tally, const char* prefix, Verbosity verbosity) {
  return metric(fmt::format("{}loss", prefix).c_str(), tally.mean_loss(), verbosity);
}

/// Empty beside a loss that is not finite.
std::string accuracy_text(const compute::Tally& tally, const char* prefix, Verbosity verbosity) {
  const auto accuracy = tally.accuracy();
  return accuracy ? metric(fmt::format("{}accuracy", prefix).c_str(), *accuracy, verbosity) : "";
}

std::string tally_text(const compute::Tally& tally, const char* prefix, Verbosity verbosity) {
  return loss_text(tally, prefix, verbosity) + accuracy_text(tally, prefix, verbosity);
}

std::string step_time(double seconds) {
  if (seconds >= 1 || seconds == 0) return fmt::format(" {:.0f}s/step", seconds);
  if (seconds >= 1e-3) return fmt::format(" {:.0f}ms/step", seconds * 1e3);
  return fmt::format(" {:.0f}us/step", seconds * 1e6);
}

/// The values of an epoch in as many lines as a terminal of so many columns needs, each of them
/// whole. Elsewhere programs read them from one line.
std::string in_lines(const std::string& line, std::optional<std::size_t> columns) {
  std::string text;
  for (std::size_t begin = 0, column = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(" - ", begin + 1), line.size());
    const std::string value = line.substr(begin, end - begin);
    if (columns && column > 0 && column + columns_of(value) >= *columns) {
      text += "\n ";
      column = 1;
    }
    text += value;
    column += columns_of(value);
    begin = end;
  }
  return text;
}

/// Images a second, and what they are of where that is not the whole network.
std::string epoch_speed(const loop::EpochRecord& r) {
  const bool whole = runfiles::are_of_network(r.train.images, r.from_features);
  return fmt::format(" - img/s: {:.1f}{}", r.seconds > 0 ? r.train.images / r.seconds : 0,
                     whole ? "" : " (features kept)");
}

/// Whether a share of an epoch's time that the machine took begins to matter, or is much more than
/// what was `told` last.
bool is_news(double share, double worth_saying, std::optional<double>& told) {
  constexpr double kMuch = 0.2;
  if (share < worth_saying || (told && share - *told < kMuch)) return false;
  told = share;
  return true;
}

/// The lines that Keras 2 prints while fitting, digit for digit, with our own fields after them.
class Console final : public RunReporter {
 public:
  Console(std::FILE* lines, std::FILE* notices, Verbosity verbosity, bool crowded)
      : lines_(lines), notices_(notices), bar_(lines), verbosity_(verbosity), crowded_(crowded) {}

  void begin_epoch(const loop::EpochStart& start) override {
    start_ = start;
    watch_ = {};
    since_draw_ = {};
    first_step_seconds_ = 0;
    if (verbosity_ == Verbosity::silent) return;
    print(start.epochs ? fmt::format("Epoch {}/{}\n", start.epoch, *start.epochs)
                       : fmt::format("Epoch {}\n", start.epoch));
  }

  void step(const loop::StepRecord& r) override {
    if (r.step_in_epoch == start_.made + 1) first_step_seconds_ = watch_.seconds();
    if (r.skipped) print_skipped(r.step);
    constexpr double kRedrawSeconds = 0.05;
    if (verbosity_ != Verbosity::bar || since_draw_.seconds() < kRedrawSeconds) return;
    since_draw_ = {};
    const double left = (start_.steps - r.step_in_epoch) * per_step(r.step_in_epoch);
    const compute::Tally& tally = r.epoch_tally;
    bar_.draw(running_line({.step = r.step_in_epoch,
                            .steps = start_.steps,
                            .time = fmt::format(" - ETA: {}", eta_text(left)),
                            .loss = loss_text(tally, "", verbosity_),
                            .accuracy = accuracy_text(tally, "", verbosity_)},
                           bar_.space()));
  }

  void epoch(const loop::EpochRecord& r) override {
    if (verbosity_ == Verbosity::silent) return;
    std::string values = tally_text(r.train, "", verbosity_);
    if (r.validation) values += tally_text(*r.validation, "val_", verbosity_);
    if (r.averaged) values += tally_text(*r.averaged, "ema_val_", verbosity_);
    for (const auto& [name, tally] : {std::pair{"top_5_accuracy", std::optional(r.train)},
                                      std::pair{"val_top_5_accuracy", r.validation}}) {
      if (tally && tally->top_five()) values += metric(name, *tally->top_five(), verbosity_);
    }
    values += epoch_speed(r);
    const auto columns = system::screen_columns(::fileno(lines_));
    if (verbosity_ == Verbosity::bar) {
      values = fmt::format(" - {:.0f}s{}{}", r.seconds, step_time(per_step(r.steps)), values);
      bar_.finish(in_lines(finished_line(r.steps, start_.steps, values, bar_.space()), columns));
    } else {
      values =
          fmt::format("{} - {:.0f}s{}", step_counter(r.steps, start_.steps), r.seconds, values);
      print(in_lines(values, columns) + "\n");
    }
    if (r.straggler) print_straggler(*r.straggler, r.seconds);
    print_stolen(r.taken.stolen.value_or(0));
    print_cpu_wait(r.taken.cpu_wait.value_or(0));
  }

  void rate_changed(int epoch, double rate) override {
    if (verbosity_ == Verbosity::silent) return;
    notice(fmt::format("Learning rate {:g} from epoch {} on (plateau)", rate, epoch));
  }

  void summary(const SummaryRecord&) override { bar_.leave(); }

 private:
  void print_skipped(std::uint64_t step) {
    if (verbosity_ == Verbosity::silent) return;
    notice(fmt::format("Warning: step {} was skipped: its gradients were NaN or infinite", step));
  }

  void print_straggler(const loop::Straggler& s, double seconds) {
    constexpr double kWorthALine = 0.1, kLeastSeconds = 0.1;
    if (s.seconds < std::max(kWorthALine * seconds, kLeastSeconds)) return;
    notice(fmt::format(
        "Straggler: the other ranks waited {:.1f} s ({:.0f} % of the epoch) for rank {} "
        "on {}",
        s.seconds, 100 * s.seconds / seconds, s.rank, escaped(s.host)));
  }

  void print_stolen(double part) {
    if (!is_news(part, system::kStolenWorthSaying, stolen_)) return;
    notice(
        fmt::format("Steal: {:.0f} % of a rank's CPU time went to others on its host", 100 * part));
  }

  void print_cpu_wait(double part) {
    if (!is_news(part, system::kWaitWorthSaying, cpu_wait_)) return;
    notice(fmt::format("Busy: threads of a rank waited {:.0f} % of their time for a CPU ({})",
                       100 * part, system::cpu_wait_reason(crowded_)));
  }

  /// Seconds a step since the first one that was made here, as Keras counts (it warms up).
  double per_step(std::size_t steps) const {
    const std::size_t here = steps - std::min(steps, start_.made);
    if (here <= 1) return watch_.seconds();
    return (watch_.seconds() - first_step_seconds_) / static_cast<double>(here - 1);
  }

  void print(const std::string& text) { system::put(lines_, text); }

  /// For people, not for programs that read Keras' lines.
  void notice(const std::string& text) {
    bar_.leave();
    system::put(notices_, system::in_lines_of(::fileno(notices_), text) + "\n");
  }

  std::FILE* lines_;
  std::FILE* notices_;
  system::RedrawnLine bar_;
  Verbosity verbosity_;
  bool crowded_;
  loop::EpochStart start_;
  system::Stopwatch watch_, since_draw_;
  double first_step_seconds_ = 0;
  std::optional<double> stolen_, cpu_wait_;  ///< told last
};

/// A line of progress every 30 s, for logs in which no bar is drawn.
class ProgressLines final : public RunReporter {
 public:
  ProgressLines(std::FILE* stream, std::function<double()> now)
      : stream_(stream), now_(std::move(now)), pace_(now_) {}

  void begin_epoch(const loop::EpochStart& start) override {
    start_ = start;
    began_ = now_();
    validation_began_.reset();
  }

  void step(const loop::StepRecord& r) override {
    validation_began_.reset();
    // What was made before the training went on took no time of this clock.
    if (r.step_in_epoch == start_.made + 1) {
      images_before_ =
          start_.made == 0 ? 0 : r.epoch_tally.images - (r.skipped ? 0 : r.tally.images);
    }
    if (!pace_.due()) return;
    const double seconds = now_() - began_;
    const double images = r.epoch_tally.images - images_before_;
    const auto accuracy = r.epoch_tally.accuracy();  // none beside a loss that is not finite
    print(fmt::format(
        "step {}/{} - ETA: {} - loss: {:.4f}{} - img/s: {:.1f}", r.step_in_epoch, start_.steps,
        eta(r.step_in_epoch - start_.made, start_.steps - start_.made, seconds),
        r.epoch_tally.mean_loss(), accuracy ? fmt::format(" - accuracy: {:.4f}", *accuracy) : "",
        seconds > 0 ? images / seconds : 0));
  }

  void validating(std::size_t images, std::size_t all) override {
    if (!validation_began_) validation_began_ = now_();
    if (!pace_.due()) return;
    print(progress_text("validation", images, all, now_() - *validation_began_));
  }

  void epoch(const loop::EpochRecord&) override { validation_began_.reset(); }

 private:
  static std::string eta(std::size_t done, std::size_t all, double seconds) {
    if (done == 0 || done > all) return "unknown";
    return eta_text(seconds * static_cast<double>(all - done) / static_cast<double>(done));
  }

  void print(const std::string& what) {
    const std::string epoch = start_.epochs ? fmt::format("{}/{}", start_.epoch, *start_.epochs)
                                            : std::to_string(start_.epoch);
    system::put(stream_, fmt::format("Epoch {} - {}\n", epoch, what));
  }

  std::FILE* stream_;
  std::function<double()> now_;
  system::LogPace pace_;
  loop::EpochStart start_;
  double began_ = 0;                        ///< the epoch
  double images_before_ = 0;                ///< those before, where it goes on
  std::optional<double> validation_began_;  ///< while it runs
};

}  // namespace

std::string figure_text(double value) {
  return value > 1e-3 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value);
}

std::string running_line(const BarLine& line, std::optional<std::size_t> space) {
  const std::string counter = step_counter(line.step, line.steps);
  // The first that fits, with as wide a bar as there is room for.
  const std::pair<bool, std::string> kinds[] = {{true, line.time + line.loss + line.accuracy},
                                                {true, line.time + line.loss},
                                                {false, line.time + line.loss}};
  for (const auto& [has_bar, values] : kinds) {
    const std::size_t beside = columns_of(counter) + columns_of(values);
    const auto width = has_bar ? bar_width(beside, space) : std::optional<std::size_t>(0);
    if (!width || (space && beside > *space)) continue;
    return counter + (has_bar ? bar(line.step, line.steps, *width) : "") + values;
  }
  return counter + line.time;
}

std::string finished_line(std::size_t step, std::size_t steps, const std::string& values,
                          std::optional<std::size_t> space) {
  const std::string counter = step_counter(step, steps);
  const auto width = bar_width(columns_of(counter) + columns_of(values), space);
  return counter + (width ? bar(step, steps, *width) : "") + values;
}

std::unique_ptr<RunReporter> console_reporter(std::FILE* lines, std::FILE* notices,
                                              Verbosity verbosity, bool crowded) {
  return std::make_unique<Console>(lines, notices, verbosity, crowded);
}

std::unique_ptr<RunReporter> progress_reporter(std::FILE* stream, std::function<double()> now) {
  return std::make_unique<ProgressLines>(stream, std::move(now));
}

}  // namespace cputrain::logging
