#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "scaling/cells/plan.h"
#include "scaling/sweep/sweep_request.h"
#include "tests/fuzz/fuzzer.h"

namespace cputrain::testing::sweep_fuzzer {
namespace {

/// The grid of a sweep.json, and its cells where these are few enough.
void plan(const nlohmann::json& flags) {
  constexpr double kMostCells = 1000;
  const cells::SweepGrid grid = sweep::united(sweep::grid_from(flags, "sweep.json"), {});
  if (cells::count_cells(grid) > kMostCells) return;
  for (const cells::Cell& cell : cells::cells_of(grid)) {
    promise(!cells::cell_name(cell).empty() && !cells::cell_text(cell).empty(), "cells have names");
  }
}

/// What two files in the folder of a sweep say: its grid, and what was there before it grew.
std::vector<std::string> seeds() {
  return {R"({"np": "1,2,96", "threads": "1,2", "batch": "8,16", "backend": "cpu,cuda",
              "allreduce": "auto,ring", "lr": "0.1"})",
          R"({"np": "1,2", "threads": "1", "batch-per-rank": "8", "backend": "cpu"})",
          R"({"order": ["np1-t1-b8-cpu"], "images": {"8": 112, "16": 224}})"};
}

bool takes(const std::string& text) {
  own_file(sweep::kKeptName, text);
  const bool is_kept = is_taken([&] {
    const sweep::Kept kept = sweep::kept_in(own_folder());
    own_file(sweep::kKeptName, json_text(sweep::to_json(kept)));
    promise(sweep::kept_in(own_folder()) == kept, "what is written is read again");
  });
  nlohmann::json flags;
  try {
    flags = parse_strict_json(text);
  } catch (const std::runtime_error&) {
    return is_kept;
  }
  return is_taken([&] { plan(flags); }) || is_kept;
}

const Fuzzer kFuzzer{"sweep", seeds, takes};

}  // namespace
}  // namespace cputrain::testing::sweep_fuzzer
