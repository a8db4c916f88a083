#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "model/weights/network/network_steps.h"

namespace cputrain::model {

/// Whether a layer or network of a Keras file is of one of Keras' own classes.
bool is_keras_class(const nlohmann::json& entry);

/// What a layer of this class of Keras does; unknown for one that has no counterpart here.
NetworkStep keras_layer_step(const std::string& class_name, const nlohmann::json& config);

/// What the member `activation` says.
NetworkStep keras_activation_step(const nlohmann::json& config);

}  // namespace cputrain::model
