#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scaling/cells/plan.h"

namespace cputrain::sweep {

/// What --precision may ask each backend of this build for.
using Precisions = std::map<std::string, std::vector<std::string>>;

/// What a person asked of a sweep, beside what its trainings are asked.
struct SweepRequest {
  cells::SweepGrid grid;
  bool full_epochs = false, oversubscribe = false;
  bool plan_only = false, collect = false, retry = false, extend = false;
  std::optional<int> task;
  std::string launcher;
  int repeats = 3;  ///< for a cell

  Precisions precisions;
  /// Words for every training of the sweep, whatever its cell.
  std::vector<std::string> passed_on;
  /// The flags among them that make another experiment of it, apart from what a table says in
  /// fields of their own; "true" for a switch.
  std::map<std::string, std::string> options;
};

}  // namespace cputrain::sweep
