#include "scaling/bench/kernel_figures.h"

#include <nlohmann/json.hpp>

#include "core/json_text.h"

namespace cputrain::bench {
namespace {

using Json = nlohmann::ordered_json;

/// `amount` a second, by round.
Spread rates(double amount, const std::vector<double>& seconds) {
  std::vector<double> values;
  for (const double s : seconds) values.push_back(amount / s);
  return spread_of(std::move(values));
}

/// Seconds of one image in layer `index`, by round.
std::vector<double> seconds_of(const KernelRounds& rounds, std::size_t index,
                               const compute::LayerDirection& way) {
  std::vector<double> seconds;
  for (const auto& layers : rounds.layers) {
    seconds.push_back(layers[index].*way.seconds / rounds.images());
  }
  return seconds;
}

LayerFigures layer_figures(const KernelRounds& rounds, std::size_t index,
                           const model::LeastBytes& least, const compute::Limits& limits) {
  const compute::LayerTime& layer = rounds.layers.back()[index];
  LayerFigures figures{.name = layer.name,
                       .macs = layer.macs,
                       .bytes_of_image = least.of_image + least.of_call / rounds.micro_batch,
                       .density = layer.density,
                       .gradient_density = layer.gradient_density};
  for (const compute::LayerDirection& way : compute::kLayerDirections) {
    const std::vector<double> seconds = seconds_of(rounds, index, way);
    const Spread spread = spread_of(seconds);
    if (spread.min <= 0) continue;
    DirectionFigures& own = figures.directions.emplace_back(
        DirectionFigures{&way, way.algorithm(layer), spread, std::nullopt, std::nullopt});
    if (layer.macs > 0) {
      own.gflops = rates(2e-9 * layer.macs, seconds);
      own.of_peak = own.gflops->median / limits.fma_gflops;
    }
    if (figures.bytes_of_image > 0) {
      own.gbs = rates(1e-9 * figures.bytes_of_image, seconds);
      own.of_bandwidth = own.gbs->median / limits.triad_gbs;
    }
  }
  return figures;
}

Json json_of(const std::optional<Spread>& spread) {
  return spread ? cputrain::json_of(*spread) : Json();
}

Json json_of(const LayerFigures& layer) {
  Json directions = Json::array();
  for (const DirectionFigures& d : layer.directions) {
    directions.push_back({{"direction", d.way->name},
                          {"algorithm", d.algorithm},
                          {"seconds_per_image", cputrain::json_of(d.seconds)},
                          {"gflops", json_of(d.gflops)},
                          {"fraction_of_peak", known(d.of_peak)},
                          {"gbs", json_of(d.gbs)},
                          {"fraction_of_bandwidth", known(d.of_bandwidth)}});
  }
  return {{"name", layer.name},
          {"macs_per_image", layer.macs},
          {"bytes_per_image", layer.bytes_of_image},
          {"density", known(layer.density)},
          {"gradient_density", known(layer.gradient_density)},
          {"directions", std::move(directions)}};
}

}  // namespace

KernelFigures kernel_figures(const KernelRounds& rounds,
                             const std::map<std::string, model::LeastBytes>& least,
                             double training_flops, const compute::Limits& limits) {
  KernelFigures figures{.micro_batch = rounds.micro_batch, .images = rounds.images()};
  std::vector<double> whole;
  for (const auto& layers : rounds.layers) {
    double seconds = 0;
    for (const compute::LayerTime& layer : layers) seconds += layer.seconds();
    whole.push_back(seconds / figures.images);
  }
  figures.seconds = spread_of(whole);
  figures.gflops = rates(1e-9 * training_flops, whole);
  figures.of_peak = figures.gflops.median / limits.fma_gflops;
  for (std::size_t i = 0; i < rounds.layers.back().size(); ++i) {
    // A program may have steps that are no layer of the graph, such as a copy.
    const auto found = least.find(rounds.layers.back()[i].name);
    figures.layers.push_back(layer_figures(
        rounds, i, found == least.end() ? model::LeastBytes{} : found->second, limits));
  }
  return figures;
}

nlohmann::ordered_json json_of(const KernelFigures& figures) {
  Json layers = Json::array();
  for (const LayerFigures& layer : figures.layers) layers.push_back(json_of(layer));
  return {{"seconds_per_image", json_of(figures.seconds)},
          {"gflops", json_of(figures.gflops)},
          {"fraction_of_peak", figures.of_peak},
          {"layers", std::move(layers)}};
}

}  // namespace cputrain::bench
