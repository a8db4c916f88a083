#include "compute/layer_time.h"

#include <fmt/format.h>

#include <cassert>

namespace cputrain::compute {

std::string algorithms_text(const LayerTime& layer) {
  std::string text = layer.algorithm;
  if (!layer.weights_algorithm.empty()) text += ", weights " + layer.weights_algorithm;
  if (!layer.data_algorithm.empty()) text += ", data " + layer.data_algorithm;
  return text;
}

std::vector<LayerTime> difference(std::vector<LayerTime> now,
                                  const std::vector<LayerTime>& before) {
  assert(now.size() == before.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (const LayerDirection& way : kLayerDirections) {
      now[i].*way.seconds -= before[i].*way.seconds;
    }
  }
  return now;
}

double gflops(double macs, double images, double seconds) {
  return seconds > 0 ? 2e-9 * macs * images / seconds : 0;
}

std::optional<double> density_of(const std::vector<LayerTime>& layers) {
  double alive = 0, work = 0;
  for (const LayerTime& layer : layers) {
    if (!layer.density) continue;
    alive += layer.macs * *layer.density;
    work += layer.macs;
  }
  return work > 0 ? std::optional(alive / work) : std::nullopt;
}

std::string density_text(const std::optional<double>& density) {
  return density ? fmt::format("{:.3f}", *density) : "";
}

}  // namespace cputrain::compute
