#pragma once

#include <nlohmann/json_fwd.hpp>

#include "weights/step_paths.h"

namespace cputrain::weights {

/// What a layer of Keras does. A class of Keras' own that no layer here is like is foreign, its
/// word what to say behind its name; any other class is unknown.
NetworkStep keras_layer_step(const nlohmann::json& entry);

/// What the member `activation` says.
NetworkStep keras_activation_step(const nlohmann::json& config);

}  // namespace cputrain::weights
