#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/layer_time.h"
#include "core/statistics/statistics.h"
#include "data/batch_source.h"
#include "model/summary.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

namespace cputrain::bench {

/// What was measured: by round, seconds of every layer, with what ran it.
struct KernelRounds {
  int micro_batch, passes;  ///< images at once; how often in a round
  std::vector<std::vector<compute::LayerTime>> layers{};

  int images() const { return micro_batch * passes; }
};

/// A network whose passes are timed layer by layer, for one number of images at once. Nothing is
/// updated: weights stay as they were given, so every round computes the same.
class KernelTrial {
 public:
  /// With the spec's weights, or initial ones by its seed. A round is the first `passes`
  /// micro-batches of the source.
  KernelTrial(const training::Session&, const model::Graph&, const training::TrainingSpec&,
              int micro_batch, int passes);

  /// Rounds that do not count: until the program has found its algorithms, and one more.
  void warm_up(data::BatchSource&);
  void measure(data::BatchSource&);

  const KernelRounds& rounds() const { return rounds_; }

 private:
  void round(data::BatchSource&);

  std::uint64_t seed_;
  compute::OwnedArray weights_, gradients_;
  std::unique_ptr<compute::Program> program_;
  KernelRounds rounds_;
};

/// A layer in one direction; spreads are over the measured rounds.
struct DirectionFigures {
  const compute::LayerDirection* way;
  std::string algorithm;
  Spread seconds;                ///< per image
  std::optional<Spread> gflops;  ///< counting direct convolution; for layers that multiply
  std::optional<Spread> gbs;     ///< for least_bytes(), in layers that move anything by themselves
  std::optional<double> of_peak{};  ///< by the medians
  std::optional<double> of_bandwidth{};
};

struct LayerFigures {
  std::string name;
  double macs = 0;            ///< per image
  double bytes_of_image = 0;  ///< that must at least move, weights shared out over the micro-batch
  std::optional<double> density{}, gradient_density{};
  std::vector<DirectionFigures> directions{};  ///< in which it took any time
};

/// All layers of a network with one number of images at once.
struct KernelFigures {
  int micro_batch = 0, images = 0;  ///< at once, in a round
  std::vector<LayerFigures> layers{};
  Spread seconds{}, gflops{};  ///< one image, all layers; by rounds, counting direct convolution
  double of_peak = 0;
};

/// `limits` were measured in the same run; `training_flops` is Graph's.
KernelFigures kernel_figures(const KernelRounds&, const std::map<std::string, model::LeastBytes>&,
                             double training_flops, const compute::Limits& limits,
                             Precision precision);

nlohmann::ordered_json json_of(const KernelFigures&);

/// The same number of images at once with the zeros that the weights give, and with none.
struct KernelPair {
  KernelFigures given, no_zeros;
};

/// A line a layer and direction for each number of images, the worst case beside the given weights;
/// then a line a number of images, all layers together.
void print_kernels(const std::vector<KernelPair>&);

}  // namespace cputrain::bench
