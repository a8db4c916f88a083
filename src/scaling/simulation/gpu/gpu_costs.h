#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "core/names.h"
#include "model/graph.h"
#include "scaling/simulation/cost_table.h"

/// What a training step costs on one GPU: the file that `scripts/gpu_costs` writes.
namespace cputrain::simulation {

/// Where seconds come from: a model of the kernels' instructions and bytes, a run of this program,
/// or images per second that others printed of another one.
enum class GpuCostKind { predicted, measured, published };
constexpr auto names(GpuCostKind) {
  return std::to_array<Name<GpuCostKind>>({{GpuCostKind::predicted, "predicted"},
                                           {GpuCostKind::measured, "measured"},
                                           {GpuCostKind::published, "published"}});
}

/// A step of one batch size on one GPU, without sums and without waiting for images.
struct GpuStepCost {
  std::string gpu, model;
  int image_size = 0;
  std::string precision;  ///< "tf32", "bf16", "exact", or what the source calls it
  double parameters = 0;  ///< 0: not said
  int batch = 1, micro_batch = 1;
  double seconds = 0;  ///< the whole step's
  double update = 0;   ///< the update's part
  /// All micro-batches together, in the order of the forward pass. None: only the seconds are
  /// known.
  std::vector<LayerSeconds> layers{};
};

struct GpuCosts {
  GpuCostKind kind = GpuCostKind::predicted;
  std::string source, date, commit;
  std::vector<GpuStepCost> steps;

  /// "predicted on 2026-11-27 by commit abc1234: scripts/predict_gpu", for readers of a table.
  std::string origin() const;
};

nlohmann::ordered_json to_json(const GpuCosts&);
/// Error(data), naming `where`, for anything odd.
GpuCosts gpu_costs_from_json(const nlohmann::json&, const std::string& where);
/// Reads a file that may be hostile. Error(data).
GpuCosts read_gpu_costs(const std::filesystem::path&);

/// What one GPU does in a step of some images.
struct GpuStep {
  double forward = 0, update = 0;
  double other = 0;              ///< launches and copies that no layer has
  std::vector<double> backward;  ///< by node of the graph
  /// Part of forward and backward that is the last micro-batch's, in whose backward gradients
  /// become final.
  double last = 1;

  double all_backward() const { return std::accumulate(backward.begin(), backward.end(), 0.0); }
  double seconds() const { return forward + all_backward() + update + other; }
};

/// The steps of the GPU, network and precision of `wanted`; none where there are none.
GpuCosts costs_for(const GpuCosts&, const GpuStepCost& wanted);

/// The costs of such steps, by images. Where only a step's seconds are known, layers have parts of
/// them by their multiply-adds: one in forward, two in backward, one there for the first layer that
/// has weights.
class GpuStepCosts {
 public:
  /// Error(usage) where there are none; Error(data) where they are of another network.
  GpuStepCosts(const GpuCosts&, const GpuStepCost& wanted, const model::Graph&);

  /// Why there is no step of so many images; empty where there is.
  std::string obstacle(int images) const;
  /// In proportion between the two batches around it.
  GpuStep at(int images) const;

 private:
  std::string gpu_;
  std::vector<int> batches_;        ///< ascending
  std::vector<int> micro_batches_;  ///< by batch
  std::vector<GpuStep> steps_;      ///< by batch
};

}  // namespace cputrain::simulation
