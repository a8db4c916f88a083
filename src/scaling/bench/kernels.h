#pragma once

#include <algorithm>
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compute/backend.h"
#include "compute/layer_time.h"
#include "core/statistics/statistics.h"
#include "data/dataset.h"
#include "training/request/choose_training.h"
#include "training/session/session.h"

namespace cputrain::bench {

/// What is asked for.
struct KernelRequest {
  std::vector<int> micro_batches;  ///< images at once, one size after the other
  std::size_t least;               ///< images of a round, which has whole micro-batches
  int repeats;                     ///< rounds that count

  int passes(int micro_batch) const {
    const auto each = static_cast<std::size_t>(micro_batch);
    return static_cast<int>((least + each - 1) / each);
  }
  std::size_t images(int micro_batch) const {
    return static_cast<std::size_t>(passes(micro_batch)) * static_cast<std::size_t>(micro_batch);
  }
  /// Images of the largest round.
  std::size_t most_images() const {
    std::size_t most = 0;
    for (const int each : micro_batches) most = std::max(most, images(each));
    return most;
  }
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
  int micro_batch = 0, images = 0;                        ///< at once, in a round
  std::vector<std::vector<compute::LayerTime>> rounds{};  ///< what was measured
  std::vector<LayerFigures> layers{};
  Spread seconds{}, gflops{};  ///< one image, all layers; by rounds, counting direct convolution
  double of_peak = 0;
};

nlohmann::ordered_json json_of(const KernelFigures&);

/// By number of images at once, with the zeros that the weights give, and with none: without ReLU
/// and dropout nothing is zero. (Behind a 2x2 max pool three of four gradients still are.)
struct KernelMeasurement {
  compute::Limits limits{};  ///< measured in the same run
  std::vector<KernelFigures> given{}, no_zeros{};
};

/// Times the passes of a network layer by layer, as given and without zeros, for each number of
/// images at once. Nothing is updated: weights stay as they are, those of the spec or initial ones
/// by its seed, so every round computes the same. `images` are enough for the largest round.
KernelMeasurement measure_kernels(const training::Session&, const training::TrainingSpec&,
                                  const model::Graph& given, const data::ImageSet& images,
                                  const KernelRequest&);

}  // namespace cputrain::bench
