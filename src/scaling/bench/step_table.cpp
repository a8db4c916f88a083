#include "scaling/bench/step_table.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "system/print.h"

namespace cputrain::bench {

using Json = nlohmann::ordered_json;

void print_layers(const std::vector<compute::LayerTime>& layers, double images, int steps) {
  system::print(
      "\nms per step (of {} more) on rank 0, GFLOP/s of direct convolution, and what is not zero "
      "of the map that is read and of the gradient that comes back\n"
      "{:<22}{:>10}{:>8}{:>10}{:>8}{:>10}{:>8}{:>7}{:>7}  {}\n",
      steps, "layer", "forward", "", "bwd data", "", "bwd wei.", "", "map", "grad.", "algorithm");
  for (const compute::LayerTime& layer : layers) {
    const auto cell = [&](double seconds) {
      const double rate = compute::gflops(layer.macs, images, seconds / steps);
      return seconds == 0 ? fmt::format("{:>10}{:>8}", "", "")
                          : fmt::format("{:>10.2f}{:>8}", 1e3 * seconds / steps,
                                        rate > 0 ? fmt::format("{:.0f}", rate) : "");
    };
    system::print("{:<22}{}{}{}{:>7}{:>7}  {}\n", layer.name, cell(layer.forward),
                  cell(layer.backward_data), cell(layer.backward_weights),
                  compute::density_text(layer.density),
                  compute::density_text(layer.gradient_density), compute::algorithms_text(layer));
  }
}

Json layers_json(const std::vector<compute::LayerTime>& layers, double images, int steps) {
  Json list = Json::array();
  for (const compute::LayerTime& layer : layers) {
    Json& entry = list.emplace_back(Json{{"name", layer.name},
                                         {"algorithm", compute::algorithms_text(layer)},
                                         {"density", known(layer.density)},
                                         {"gradient_density", known(layer.gradient_density)}});
    for (const compute::LayerDirection& way : compute::kLayerDirections) {
      const double seconds = layer.*way.seconds / steps;
      entry[fmt::format("{}_seconds", way.name)] = seconds;
      entry[fmt::format("{}_gflops", way.name)] = compute::gflops(layer.macs, images, seconds);
    }
  }
  return list;
}

Json density_json(const std::vector<compute::LayerTime>& layers) {
  double alive = 0, work = 0;
  for (const compute::LayerTime& layer : layers) {
    if (!layer.density) continue;
    alive += layer.macs * *layer.density;
    work += layer.macs;
  }
  return work > 0 ? Json(alive / work) : Json();
}

void print_disturbance(const CalmRounds& rounds, int steps) {
  if (rounds.left_out() == 0 && !rounds.gave_up()) return;
  system::print("{:.1f} % of a rank's CPU time went to others on its host (steal): ",
                100 * rounds.stolen_of_all().value_or(0));
  const auto each = static_cast<std::size_t>(steps);
  if (rounds.gave_up()) {
    system::print("too few steps were calm, so all count; try again at a quieter time\n");
  } else {
    system::print("{} of {} steps were left out, with {:.1f} % in those that count\n",
                  each * rounds.left_out(), each * rounds.measured(),
                  100 * rounds.stolen_of_counted().value_or(0));
  }
}

}  // namespace cputrain::bench
