#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scaling/cells/plan.h"
#include "training/request/training_flags.h"

namespace cputrain::sweep {

/// What --precision may ask each backend of this build for.
using Precisions = std::map<std::string, std::vector<std::string>>;

/// What a person asked of a sweep, beside what its trainings are asked.
struct SweepRequest {
  cells::SweepGrid grid;
  bool full_epochs = false, oversubscribe = false;
  bool plan_only = false, collect = false, retry = false, extend = false;
  std::optional<int> task;
  std::string launcher, machine_name;
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
/// The same for larger batches.
void check_limits(const std::vector<cells::Cell>&, const cells::SweepGrid&);

/// Asks a training for one value of a listed flag, in the spelling of tables. The default leaves
/// them as they are. Error(usage).
void set_value(training::TrainingFlags&, std::string_view flag, const std::string& value);

// A sweep that --extend adds cells to, and what of it may not change.

/// What is known of cells that were there before others were added.
struct Kept {
  std::vector<std::string> order;             ///< their names by task, from 1
  std::map<std::size_t, std::size_t> images;  ///< by batch: SweepPlan::images

  bool operator==(const Kept&) const = default;
};

inline constexpr const char* kKeptName = "extended.json";

/// What the folder's extensions left; nothing where there was none. Error(data).
Kept kept_in(const std::filesystem::path& folder);
nlohmann::ordered_json to_json(const Kept&);

/// Cells that were there first, in their order; then the others in theirs.
void put_in_order(std::vector<cells::Cell>&, const Kept&);

/// The grid of a sweep.json. Error(data) names `where`.
cells::SweepGrid grid_from(const nlohmann::json& flags, const std::string& where);

/// The values of `there`, and behind them those of `added` that it has not. Where one of them does
/// not say a listed flag, it has the usual value.
cells::SweepGrid united(cells::SweepGrid there, const cells::SweepGrid& added);

/// The names of the grid's lists in sweep.json.
bool is_of_grid(const std::string& flag);

}  // namespace cputrain::sweep
