#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "logging/reporter.h"
#include "train/trainer.h"

/// What a training says at its end: what came out, which weights lie where, how long it took.
namespace cputrain::run {

struct RunEnd {
  const train::TrainResult& result;
  std::filesystem::path folder;
  std::optional<double> target{};         ///< --target-accuracy
  std::optional<double> best_accuracy{};  ///< of validation, in the best epoch
  bool keeps_best = false;                ///< --save-best or --early-stopping
  bool kept_best = false;                 ///< best.safetensors has the weights of result.best
  std::optional<logging::PeakMemory> memory{};
  logging::ProgramSeconds program{};
  std::string lost{};  ///< cells/lost_time.h: text_of()
};

std::vector<std::string> end_lines(const RunEnd&);

}  // namespace cputrain::run
