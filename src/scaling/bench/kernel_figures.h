#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "core/statistics/spread.h"
#include "model/least_bytes.h"
#include "scaling/bench/kernel_trial.h"

namespace cputrain::bench {

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
                             double training_flops, const compute::Limits& limits);

nlohmann::ordered_json json_of(const KernelFigures&);

}  // namespace cputrain::bench
