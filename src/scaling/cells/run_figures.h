#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "core/budget.h"
#include "scaling/cells/plan.h"
#include "scaling/cells/run_devices.h"

/// What one training that measured a cell left in its run folder, and what a cell's trainings say
/// together.
namespace cputrain::cells {

struct RunFigures {
  double seconds_per_epoch = 0;
  int steps = 0;                   ///< that were measured
  double step_seconds = 0;         ///< median of them
  bool includes_warm_up = false;   ///< there were no others than those that tried algorithms
  std::optional<Budget> budget{};  ///< of those seconds per epoch
  std::optional<double> loss{}, accuracy{}, val_accuracy{};
  bool had_target = false;
  std::optional<double> seconds_to_target{};  ///< nothing where it was not reached
  std::optional<double> fma_gflops{}, triad_gbs{};
  std::optional<double> stolen{};  ///< part of a rank's CPU time, of the epochs that were measured
  std::optional<double> peak_rank_bytes{}, peak_node_bytes{}, peak_device_bytes{};
  RunDevices devices{};
  std::optional<double> cpu_wait{};  ///< the same of the time for which its threads wanted a CPU
};

/// Steps that were measured, scaled to an epoch: of the whole steps in metrics.jsonl in which no
/// algorithms were tried, nor memory touched first, the last `plan.measured`. Nothing where there
/// are none, where the training did not come to its end or was on an emulated device, or where the
/// file is damaged or larger than training::kMetricsLimits. Single figures that no table can hold
/// are not known.
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
