#include "scaling/sweep/sweep_request.h"

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "scaling/cells/axes.h"
#include "training/request/flag_grammars.h"
#include "training/request/training_rows.h"

namespace cputrain::sweep {
namespace {

bool counts_gpus(const cells::SweepGrid& grid, const cells::Cell& cell) {
  return training::is_device(cell.backend) && !grid.gpus.empty();
}

/// What a backend of devices lacks for the column of most GPUs; empty where nothing.
std::string lacking(const cells::Launching& launching, const std::string& backend, int most) {
  const auto here = std::ranges::find(launching.backends, backend, &cells::BackendHere::name);
  if (here == launching.backends.end()) {
    return fmt::format(
        "this build has no backend {}; build one that has it, or leave it and --gpus out", backend);
  }
  if (!launching.words.empty() || launching.cluster || !here->devices) return "";
  if (*here->devices == 0) {
    return fmt::format(
        "there is no device for backend {} here: {}; leave it and --gpus out, or measure where it "
        "is (--launcher, --plan-only)",
        backend, here->why_none);
  }
  if (launching.oversubscribe || static_cast<std::size_t>(most) <= *here->devices) return "";
  return fmt::format(
      "this machine has {} for backend {}, not {}; name so many at most, --oversubscribe to let "
      "ranks share them, or what starts ranks on several machines (--launcher)",
      counted(*here->devices, "GPU"), backend, most);
}

training::TrainingFlags flags_with(training::TrainingFlags flags, const cells::FlagTexts& axes) {
  const training::TrainingFlags usual;
  for (const cells::ListedFlag& flag : cells::kListedFlags) {
    training::training_row(flag.name).copy(flags, usual);
  }
  for (const auto& [flag, value] : axes) set_value(flags, flag, value);
  return flags;
}

}  // namespace

void check_gpus(const cells::SweepGrid& grid, const std::optional<cells::Launching>& launching) {
  if (grid.gpus.empty()) return;
  const std::string flag = "--gpus " + list_text(grid.gpus);
  if (std::ranges::none_of(grid.backends, training::is_device)) {
    fail(ExitCode::usage,
         "{} with --backend {}: no column is of GPUs; add a backend of GPUs, such as --backend "
         "cpu,cuda",
         flag, list_text(grid.backends));
  }
  if (!launching) return;
  for (const std::string& backend : grid.backends) {
    if (!training::is_device(backend)) continue;
    const std::string why = lacking(*launching, backend, std::ranges::max(grid.gpus));
    if (!why.empty()) fail(ExitCode::usage, flag + ": " + why);
  }
}

void check_limits(const std::vector<cells::Cell>& cells, const cells::SweepGrid& grid) {
  for (const cells::Cell& cell : cells) {
    if (cell.batch <= cells::kMostBatch) continue;
    fail(ExitCode::usage,
         "--batch-per-rank {} with --{} {}: batches of up to {} over all ranks are allowed, and {} "
         "ranks make {}",
         list_text(grid.batches_per_rank), counts_gpus(grid, cell) ? "gpus" : "np",
         list_text(grid.counts_of(cell.backend)), cells::kMostBatch, cell.ranks, cell.batch);
  }
}

void check_size(const cells::SweepGrid& grid) {
  const double count = cells::count_cells(grid);
  if (count <= static_cast<double>(cells::kMostCells)) return;
  std::vector<std::string> flags;
  cells::for_each_list(grid, [&](const char* name, const auto& list) {
    if (list.size() > 1) flags.push_back(fmt::format("--{} {}", name, list_text(list)));
  });
  fail(ExitCode::usage, "{}: {:.0f} cells, and at most {} are allowed; name fewer values",
       join(flags, " "), count, cells::kMostCells);
}

void set_value(training::TrainingFlags& flags, std::string_view flag, const std::string& value) {
  if (value == cells::kOwnDefault) return;
  training::training_row(flag).set(flags, value);
}

training::TrainingSpec choose_any(const training::TrainingFlags& flags,
                                  const cells::SweepGrid& grid) {
  const std::vector<cells::FlagTexts> all = cells::combinations_of(grid);
  const auto possible = std::ranges::find_if(
      all, [&](const cells::FlagTexts& axes) { return why_never(flags, axes).empty(); });
  return training::choose_training(
      flags_with(flags, possible == all.end() ? all.front() : *possible));
}

std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes) {
  try {
    static_cast<void>(training::choose_training(flags_with(flags, axes)));
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    return error.what();
  }
  return "";
}

}  // namespace cputrain::sweep
