#pragma once

#include <string>
#include <vector>

#include "core/budget.h"
#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/simulation/gpu/gpu_costs.h"
#include "scaling/simulation/platform.h"
#include "training/gradient_sums.h"

namespace cputrain::simulation {

/// Seconds of the sum of so many bytes of every GPU, whose result all have, as NCCL does it with
/// rings over g GPUs of each of the K nodes that they fill. In each node a reduce-scatter leaves a
/// slice of its sum on every GPU, rings between nodes sum slices over all network cards at the same
/// time, and an all-gather hands them round:
///
///   sum + 2 (g - 1) hop + 2 (g - 1)/g bytes/ring + 2 (K - 1) latency + 2 (K - 1)/K bytes/network
///
/// One GPU sums nothing and takes no time.
double sum_seconds(const Platform&, int gpus, double bytes);

/// When the last bucket of gradients is summed: one after the other in a stream of their own,
/// beside backward. By bucket: from when on it may be summed, from the step's beginning, and how
/// long that takes.
double end_of_sums(const std::vector<double>& ready, const std::vector<double>& seconds);

/// What of a training decides besides its costs.
struct GpuRun {
  std::size_t images_per_epoch = 0;
  double image_bytes = 0;        ///< a decoded one's
  bool images_on_device = true;  ///< all of them, on every GPU
  bool prefetch = true;          ///< the next images are made and sent while a GPU computes
  double bucket_bytes = 0;
};

/// Whether all training images stay on each GPU where no flag decides: they may take half of its
/// memory.
inline bool images_fit(const GpuNode& node, double bytes) {
  return bytes <= 1e9 * node.memory_gb / 2;
}

/// Cells of a platform of GPUs, from costs of one of them: what they sum and what images come from
/// the host is added on simulated time, by formulas; nothing is drawn at random.
class GpuForecast {
 public:
  /// Costs must be those of the platform's GPUs.
  GpuForecast(Platform platform, GpuCostKind kind, GpuStepCosts costs, const model::Graph& graph,
              const GpuRun& run);

  /// All but the command: figures, or "n/a" with its reason.
  void fill(cells::Cell&) const;

 private:
  std::string obstacle(const cells::Cell&) const;
  int of_node(int gpus) const { return gpus / nodes_used(platform_, gpus); }
  /// From when on each bucket may be summed.
  std::vector<double> ready_of(const GpuStep&) const;
  /// Rates of each GPU, while all of its node do the same: into pinned memory, by a thread of its
  /// rank that reads and writes every byte; and from there.
  double copy_gbs(int gpus) const;
  double send_gbs(int gpus) const;
  double input_seconds(int images, int gpus) const;
  /// A step on the GPU that has most images; parts add up to its seconds.
  Budget step_budget(int images, int gpus) const;
  cells::CellLimits limits_of(int images, int gpus, const Budget& step) const;

  Platform platform_;
  GpuCostKind kind_;
  GpuStepCosts costs_;
  GpuRun run_;
  double flops_per_image_;
  std::vector<training::GradientBucket> buckets_;
  double gradient_bytes_ = 0;
};

}  // namespace cputrain::simulation
