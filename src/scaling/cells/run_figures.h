#pragma once

#include "scaling/cells/plan.h"

/// What one training that measured a cell left in its run folder: its figures, and what it ran on;
/// and what a cell's trainings say together.
namespace cputrain::cells {

/// What the ranks of a training computed on together, and with.
struct RunDevices {
  int count = 0;          ///< of GPUs; 0 where there were none, or it is not known
  std::string name{};     ///< the same for all of them
  bool emulated = false;  ///< then none of its times means anything
  CellOrigin origin{};    ///< rank 0's
};

/// None where the file is missing or damaged.
RunDevices devices_of_run(const std::filesystem::path& run);

/// Gives a cell what its repeats say: the origin that all of them have, and of devices the fewest
/// and all names.
void combine_devices(Cell&, const std::vector<RunDevices>&);

/// "cuda: 8 x NVIDIA H100 80GB HBM3": the most that a cell of the table has of each kind; empty
/// where no name is known.
std::string devices_text(const CellTable&);

/// What a program's libraries say of a machine, and nothing else of it: its MPI, "Open MPI 4.1.4"
/// or empty, and its build, "cputrain 1.0; oneDNN 2.6.3, ...".
CellMachine software_of(std::string_view version, const std::vector<std::string>& libraries);

/// The machine of an environment.json, which may be hostile; nothing where it names none.
/// Error(data), naming `where`, for anything odd.
std::optional<CellMachine> machine_of_run(const nlohmann::json& environment,
                                          const std::string& where);

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
