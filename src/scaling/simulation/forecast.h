#pragma once

#include <span>

#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/simulation/simulator.h"

namespace cputrain::simulation {

/// From a cell of the table to the job that computes it, and from its result to the cell's figures.
class Forecast {
 public:
  Forecast(Platform platform, CostTable costs, const model::Graph& graph, int classes,
           std::size_t images_per_epoch)
      : platform_(std::move(platform)),
        costs_(std::move(costs)),
        flops_per_image_(graph.training_flops()),
        gradient_bytes_(sizeof(float) * static_cast<double>(graph.parameter_count())),
        classes_(classes),
        images_(images_per_epoch) {}

  const Platform& platform() const { return platform_; }
  const CostTable& costs() const { return costs_; }
  cells::CellMachine machine() const { return platform_.machine(); }

  /// Why the platform has no such cell; empty where it has.
  std::string obstacle(const cells::Cell&) const;
  /// The cell's own first; where it is not known which share of its peak a core reaches, then
  /// those of the range, quickest and slowest. Steps, repeats and seed are left to the caller.
  std::vector<SimulationJob> jobs(const cells::Cell&, const std::vector<std::string>& flags) const;
  /// All figures, from the results of its jobs; the command is left to the caller.
  void fill(cells::Cell&, std::span<const SimulationResult>) const;
  /// "a core reaches 1.80 (1.30 to 2.72) of its peak of multiply-adds, that of the costs 2.61";
  /// empty where the platform says nothing of it.
  std::string share_text() const;

 private:
  /// How many times as long as by its peak a core computes, in the order of jobs(). The range holds
  /// the share that the measured core reached, as kernels may have got better since the platform's.
  std::vector<double> slower() const;

  Platform platform_;
  CostTable costs_;
  double flops_per_image_, gradient_bytes_;
  int classes_;
  std::size_t images_;
};

/// What --allreduce says where nothing was said: shared memory on one node, else the algorithm
/// between nodes that takes the least time by latency and bandwidth (comm/allreduce.h has
/// their formulas). `auto` would measure, which sends more messages than the steps that are
/// simulated.
std::string usual_allreduce(int nodes, int ranks, const Platform&, double gradient_bytes);

/// What limits a simulated epoch, in words with its numbers: the largest of what is worth naming
/// (scaling/cells/explanation.h), else `compute`. `memory_stall` is the part of forward and
/// backward that waited for memory, in seconds of the epoch.
cells::CellLimits limits_of(const cells::Cell&, const Platform&, double memory_stall);

/// Adds to what limits each cell why it is quicker than its CPUs explain, against the cell of its
/// row that has the fewest CPUs: where its efficiency is kAboveLinear (scaling/cells/explanation.h)
/// or more. Reasons are those that the simulation knows: dense layers that only one of the two
/// shards, micro-batches of another size that cost less an image; where neither holds, the part of
/// the budget that takes less CPU time. There is a result for each cell.
void explain_above_linear(std::vector<cells::Cell>&, const std::vector<SimulationResult>&,
                          const CostTable&);

}  // namespace cputrain::simulation
