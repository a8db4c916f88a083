#pragma once

#include <string>
#include <vector>

#include "compute/parameters/parameters.h"
#include "core/budget.h"
#include "model/graph.h"
#include "scaling/cells/cells.h"
#include "scaling/simulation/gpu/gpu_costs.h"
#include "scaling/simulation/gpu/gpu_sums.h"
#include "scaling/simulation/platform.h"

namespace cputrain::simulation {

/// What of a training decides besides its costs.
struct GpuRun {
  std::size_t images_per_epoch = 0;
  double image_bytes = 0;        ///< of a decoded one
  bool images_on_device = true;  ///< all of them, on every GPU
  bool prefetch = true;          ///< the next images are made and sent while a GPU computes
  double bucket_bytes = 0;
};

/// Whether all training images stay on each GPU where nobody says so: where they take at most half
/// of its memory.
bool images_fit(const GpuNode&, double bytes);

/// Cells of a platform of GPUs, from costs of one of them: what they sum and what images come from
/// the host is added on simulated time, by formulas; nothing is drawn at random.
class GpuForecast {
 public:
  /// Costs must be those of the platform's GPUs.
  GpuForecast(Platform platform, GpuCostKind kind, GpuStepCosts costs, const model::Graph& graph,
              const GpuRun& run);

  const Platform& platform() const { return platform_; }
  cells::CellMachine machine() const;
  /// All but the command: figures, or "n/a" with its reason.
  void fill(cells::Cell&) const;

 private:
  std::string obstacle(const cells::Cell&) const;
  GpuGroup group_of(const cells::Cell&) const;
  std::vector<GpuBucket> buckets_of(const GpuStep&) const;
  /// Of each GPU, while all of its node do the same: into pinned memory, by a thread of its rank
  /// that reads and writes every byte; and from there.
  double copy_gbs(const GpuGroup&) const;
  double send_gbs(const GpuGroup&) const;
  double input_seconds(int images, const GpuGroup&) const;
  /// Of a step on the GPU that has most images; parts add up to its seconds.
  Budget step_budget(int images, const GpuGroup&) const;
  cells::CellLimits limits_of(int images, const GpuGroup&, const Budget& step) const;

  Platform platform_;
  GpuCostKind kind_;
  GpuStepCosts costs_;
  GpuRun run_;
  double flops_per_image_, gradient_bytes_;
  struct Bucket {
    double bytes;
    std::size_t last_node;  ///< of the graph, whose gradient is the last in it to be final
  };
  std::vector<Bucket> buckets_;
};

}  // namespace cputrain::simulation
