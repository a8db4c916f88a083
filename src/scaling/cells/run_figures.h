#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "scaling/cells/plan.h"
#include "scaling/cells/run_environment.h"

/// What one training that measured a cell left in its run folder, and what a cell's trainings say
/// together.
namespace cputrain::cells {

/// The figures of a cell, by one training alone.
struct RunFigures : Cell {
  double step_seconds = 0;  ///< median of the steps that were measured
  bool had_target = false;
  RunDevices run_devices{};
};

/// Steps that were measured, scaled to an epoch: the last `plan.measured` of the whole steps in
/// metrics.jsonl in which no algorithms were tried, nor memory touched first. Nothing where there
/// are none, where the training did not come to its end or was on an emulated device, or where the
/// file is damaged or larger than runfiles::read_metrics() reads. Single figures that no table can
/// hold are not known.
std::optional<RunFigures> scaled_figures(const std::filesystem::path& run, const Cell&,
                                         const EpochSize&, const StepPlan&);

/// How many steps a training made that came to its end without one that scaled_figures() could
/// count; nothing where it has figures, or did not end so.
std::optional<std::int64_t> unsettled_steps(const std::filesystem::path& run, const Cell&,
                                            const EpochSize&);

/// Whole epochs: the median of their seconds, without the first, which finds algorithms, and others
/// that did. Where there is no such epoch, of what there is, which includes the warm-up.
std::optional<RunFigures> measured_figures(const std::filesystem::path& run);

/// Fills in what repeats of a cell say together: medians, and least and most. At least one run.
/// `flops_per_image`: of a training step, counting direct convolution.
void combine(Cell&, const std::vector<RunFigures>&, double images_per_epoch,
             double flops_per_image);

}  // namespace cputrain::cells
