#pragma once

#include <string>
#include <vector>

#include "model/graph.h"
#include "scaling/simulation/platform.h"

namespace cputrain::sim {

/// What a piece of a pass asks of a core.
struct SimulatedWork {
  double seconds = 0;  ///< on the platform's core
  double bytes = 0;    ///< that the node's memory moves meanwhile

  SimulatedWork& operator+=(const SimulatedWork& other) {
    seconds += other.seconds;
    bytes += other.bytes;
    return *this;
  }
};

enum class Way { forward, backward };

/// The model's costs on one rank of a platform. The seconds of the table grow by the rank's
/// slowdown, but for the part that reading and writing weights takes, which goes with the bandwidth
/// that a core has; so do sums and updates.
class LayerCosts final {
 public:
  LayerCosts(const model::Graph&, const simulation::Platform&, const simulation::CostTable&,
             int rank, const simulation::Team& of_node);

  std::size_t size() const { return layers_.size(); }
  const std::string& name(std::size_t layer) const { return layers_[layer].name; }

  /// A pass of so many images; nothing for none.
  SimulatedWork pass(std::size_t layer, Way, int images) const;
  /// This rank's part of a pass of a sharded layer: `part` of its weights, all images of the node.
  SimulatedWork shard(std::size_t layer, Way, double part, std::size_t images) const;

  /// Seconds on the platform's core of what took so many in the table's measurement.
  double scaled(double seconds) const { return seconds * slowdown_; }
  /// Whether these bytes, not the arithmetic, may decide how long a rank takes for it: then nothing
  /// before or after it can hide them.
  bool may_wait_for_memory(const SimulatedWork&) const;
  double update_seconds(double numbers) const;
  double sum_seconds(double bytes) const;
  double workspace_bytes(int images) const;
  /// The relative standard deviation of a micro-batch's seconds.
  double noise() const { return noise_; }

 private:
  struct Layer {
    std::string name;
    double weight_bytes = 0;
    double map_bytes = 0;  ///< that the forward pass reads and writes for an image
  };
  struct MeasuredSeconds {
    double fixed, of_images;
  };
  SimulatedWork work(std::size_t layer, Way, const MeasuredSeconds&, double images) const;
  double weight_bytes(std::size_t layer, Way) const;
  double measured_memory_seconds(std::size_t layer, Way, double fixed) const;
  const std::vector<double>& seconds(std::size_t layer, Way) const;

  const simulation::CostTable& costs_;
  const simulation::CostsWhenActive measured_;
  double slowdown_, noise_;
  double rank_gbs_;         ///< a rank's in the measurement
  double platform_gbs_;     ///< a rank's on the platform
  double memory_slowdown_;  ///< factor for a core's bandwidth
  std::vector<Layer> layers_;
};

}  // namespace cputrain::sim
