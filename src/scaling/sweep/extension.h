#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scaling/cells/plan.h"

/// A sweep that `--extend` adds cells to, and what of it may not change.
namespace cputrain::sweep {

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
