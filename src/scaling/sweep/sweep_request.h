#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/cells/plan.h"
#include "training/request/choose_training.h"

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

/// CPUs of a column, at most.
inline constexpr int kMostColumn = 65'536;

/// "1,2,4", as flags say it.
template <class T>
std::string list_text(const std::vector<T>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

/// Error(usage) where a grid has more cells than the readers of a table take.
void check_size(const cells::SweepGrid&);
/// Error(usage) where no column is of the GPUs that --gpus counts, and where this machine has not
/// the backend or so many of them: a count of GPUs wants a table with them. `launching` says what
/// is here; nothing where another machine may measure.
void check_gpus(const cells::SweepGrid&, const std::optional<cells::Launching>& launching);
/// The same for larger batches.
void check_limits(const std::vector<cells::Cell>&, const cells::SweepGrid&);

/// Asks a training for one value of a listed flag, in the spelling of tables. The default leaves
/// them as they are. Error(usage).
void set_value(training::TrainingFlags&, std::string_view flag, const std::string& value);

/// A training of the grid: of the first of its combinations of listed flags that one could have.
/// Error(usage) of the first where there is none. `flags`: all others.
training::TrainingSpec choose_any(const training::TrainingFlags& flags, const cells::SweepGrid&);

/// Why no training could have these values together; empty where one could.
std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes);

}  // namespace cputrain::sweep
