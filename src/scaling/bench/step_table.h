#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "compute/layer_time.h"
#include "core/statistics/calm_rounds.h"

/// What `bench step` found, for people and for programs. Times of layers are of `images` a step and
/// of so many steps.
namespace cputrain::bench {

void print_layers(const std::vector<compute::LayerTime>&, double images, int steps);
nlohmann::ordered_json layers_json(const std::vector<compute::LayerTime>&, double images,
                                   int steps);
/// Density of the activations that convolutions and dense layers read, weighted by their work; null
/// where it is not known.
nlohmann::ordered_json density_json(const std::vector<compute::LayerTime>&);

/// Time that others on its host had, in rounds of so many steps. Silent on a machine that was not
/// disturbed.
void print_disturbance(const CalmRounds&, int steps);

}  // namespace cputrain::bench
