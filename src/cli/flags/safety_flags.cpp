// Flags about work that must not be lost: checkpoints, resuming, NaN, stalls.

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "cli/flags/flag_groups.h"
#include "core/error.h"
#include "core/text.h"

namespace cputrain::cli {
namespace {

/// A positive number at the beginning of a text, and what follows it.
struct NumberAndUnit {
  double number;
  std::string_view unit;
  bool whole;
};

std::optional<NumberAndUnit> split_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number <= 0) return std::nullopt;
  return NumberAndUnit{number, {end, text.data() + text.size()}, number == std::floor(number)};
}

/// "10m,1e": at each of these marks; "0": never.
job::CheckpointMarks parse_marks(const std::string& text) {
  job::CheckpointMarks marks;
  if (text == "0") return marks;
  constexpr double kMostSteps = 1e12, kMostSeconds = 1e9, kMostEpochs = 1e6;
  const auto wrong = [&text] {
    fail(ExitCode::usage, "--checkpoint-every " + text +
                              ": must be 0 (never) or a list of N (steps), Ns (seconds), Nm "
                              "(minutes), Nh (hours) and Ne (epochs), each once: 10m,1e");
  };
  for (const std::string& part : split(text, ',')) {
    const auto read = split_number(part);
    if (!read) wrong();
    const auto& [number, unit, whole] = *read;
    const double seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
    if (unit.empty() && whole && number <= kMostSteps && !marks.steps) {
      marks.steps = static_cast<std::uint64_t>(number);
    } else if (unit == "e" && whole && number <= kMostEpochs && !marks.epochs) {
      marks.epochs = static_cast<int>(number);
    } else if (seconds > 0 && number * seconds <= kMostSeconds && !marks.seconds) {
      marks.seconds = number * seconds;
    } else {
      wrong();
    }
  }
  if (marks.none()) wrong();
  return marks;
}

/// "5" or "5:0.001".
job::EarlyStopping parse_early_stopping(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto patience = split_number(text.substr(0, colon));
  const std::string delta = colon == std::string::npos ? "0" : text.substr(colon + 1);
  const auto least = delta == "0" ? NumberAndUnit{0, "", true} : split_number(delta);
  if (!patience || !patience->whole || !patience->unit.empty() || patience->number > 1e6 ||
      !least || !least->unit.empty()) {
    fail(ExitCode::usage,
         "--early-stopping " + text +
             ": must be PATIENCE[:MIN_DELTA], a whole number of epochs from 1 and by how much the "
             "loss of validation must fall to count: 5 or 5:0.001");
  }
  return {static_cast<int>(patience->number), least->number};
}

constexpr double kMostPatience = 1e7;  // seconds: four months

}  // namespace

void add_stall_flags(Flags& f, Config& c) {
  f.group("Stalls");
  f.real("stall-timeout", c.stalls.timeout, 0, kMostPatience,
         "end with exit code 76 where no rank has got further for X seconds; 0: never [600]");
  f.real("stall-warning", c.stalls.warning, 0.5, kMostPatience,
         "say after X seconds, and then each minute, which rank the others wait for [60]");
  f.real("start-timeout", c.stalls.start, 0, kMostPatience,
         "end with exit code 76 where MPI has not started after X seconds, and say which ranks did "
         "not come; 0: never [120]");
}

void add_safety_flags(Flags& f, Config& c) {
  job::SafetyFlags& safety = c.safety;
  f.group("Checkpoints");
  f.parsed("checkpoint-every", "LIST",
           "take a checkpoint every N steps, Ns seconds, Nm minutes, Nh hours or Ne epochs, "
           "whichever comes first; 0: never. Times and epochs wait where checkpoints cost more "
           "than 1 % of the time [10m,1e]",
           [&safety](const std::string& text) { safety.checkpoint_every = parse_marks(text); });
  f.text("resume", safety.resume, "WHAT",
         "go on from a checkpoint. auto: the newest whole one in --out, or the beginning where "
         "there is none. DIR: the folder ckpt-<step>");
  f.suggest("resume", {"auto"});
  f.whole("keep", safety.keep, 1, 1'000'000, "checkpoints to keep; a finished run keeps one [2]");
  f.yes("save-best", safety.save_best,
        "keep the weights of the epoch with the lowest loss of validation in best.safetensors; "
        "those of the last step are in weights.safetensors all the same");
  f.choice(
      "on-checkpoint-failure", safety.on_checkpoint_failure,
      "if a checkpoint cannot be written: warn and train on, or end with exit code 74 [continue]");
  f.choice("on-failure", safety.on_failure,
           "if a rank dies: end as the launcher has it, or end all at once, so that "
           "scripts/supervise goes on with the others, its default [stop]");
  f.parsed(
      "early-stopping", "PATIENCE[:MIN_DELTA]",
      "end when the loss of validation has not fallen by more than MIN_DELTA for PATIENCE epochs; "
      "weights.safetensors then has the best weights, else those of the last step. Keeps the best "
      "as --save-best does",
      [&safety](const std::string& text) { safety.early_stopping = parse_early_stopping(text); });
  f.choice(
      "on-nan", safety.on_nan,
      "if gradients are NaN or infinite: end, skip the step, or go back to the last checkpoint and "
      "leave the step out [abort]");
  f.whole("check-replicas", safety.check_replicas, 0, 1'000'000'000'000,
          "compare the ranks' weights every N steps; end with exit code 64 where they differ [0: "
          "at the end alone]");
}

}  // namespace cputrain::cli
