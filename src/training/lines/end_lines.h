#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "logging/run_reporter.h"

/// What a training prints at its end: what came out, which weights lie where, how long it took.
namespace cputrain::training {

struct RunEnd {
  const logging::SummaryRecord& summary;
  std::filesystem::path folder;
  bool keeps_best = false;  ///< --save-best or --early-stopping
  bool kept_best = false;   ///< best.safetensors has the weights of the best epoch
  std::string limit{};      ///< training/lines/input_limit.h: input_limit()
  bool averages = false;    ///< averages of weights were saved
  std::string lost{};       ///< training/run/lost_seconds.h: text_of()
};

std::vector<std::string> end_lines(const RunEnd&);

}  // namespace cputrain::training
