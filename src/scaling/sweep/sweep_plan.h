#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "scaling/cells/plan.h"
#include "scaling/sweep/sweep_request.h"
#include "training/request/choose_training.h"
#include "training/session/services.h"

namespace cputrain::sweep {

/// A sweep with everything decided: which cells, and the training that measures each.
struct SweepPlan {
  std::filesystem::path folder;
  std::vector<cells::Cell> cells;
  std::vector<std::string> left_out;  ///< cells of the grid, with reasons
  int repeats = 3;                    ///< for a cell
  bool full_epochs = false;
  std::optional<int> steps;
  cells::EpochSize epoch;
  /// Training images by batch, where epochs are not whole: what the cell with most steps needs,
  /// measurable here or not. So cells of a batch have the same ones in the same order, whatever
  /// warm-up their ranks need, and their losses and a speed-up are of the same work.
  std::map<std::size_t, std::size_t> images;
  double flops_per_image = 0;  ///< a training step's
  cells::Launching launching;
  std::string program;                 ///< as one would type it here
  std::vector<std::string> passed_on;  ///< flags for every training
  /// Why no training can have these values of listed flags together.
  std::map<cells::FlagTexts, std::string> never;
  std::optional<Kept> kept;      ///< where this is an extension: what stays
  std::size_t added_from = 0;    ///< the first cell that an extension adds, from 0
  cells::CellTable table;        ///< without cells
  nlohmann::ordered_json flags;  ///< what makes this sweep this sweep: for --config

  cells::StepPlan steps_of(const cells::Cell& cell) const {
    return cells::steps_for(cell, epoch, steps);
  }
  std::filesystem::path folder_of(const cells::Cell& cell) const {
    return folder / "cells" / cells::cell_name(cell);
  }
  /// Relative to `folder`; repeats count from 1.
  std::filesystem::path run_of(const cells::Cell& cell, int repeat) const;
  std::vector<std::string> words_of_run(const cells::Cell&, int repeat) const;
  /// Why a cell cannot be measured here, in words; empty where it can.
  std::string why_not(const cells::Cell&) const;
};

/// Error(usage) where no column is of the GPUs that --gpus counts, and where this machine has not
/// the backend or so many of them: a count of GPUs wants a table with them. `launching` says what
/// is here; nothing where another machine may measure.
void check_gpus(const cells::SweepGrid&, const std::optional<cells::Launching>& launching);
/// A training of the grid: of the first of its combinations of listed flags that one could have.
/// Error(usage) of the first where there is none. `flags`: all others.
training::TrainingSpec choose_any(const training::TrainingFlags& flags, const cells::SweepGrid&);
/// Why no training could have these values together; empty where one could.
std::string why_never(const training::TrainingFlags& flags, const cells::FlagTexts& axes);

/// Looks at model, data and machine; starts no ranks. Error(usage, data) for what no training of
/// the sweep could do.
SweepPlan plan_sweep(const training::TrainingFlags&, const SweepRequest&,
                     const training::Services&);

}  // namespace cputrain::sweep
