#pragma once

#include <string>

#include "model/layer.h"
#include "model/weights/keras_layers.h"

namespace cputrain::model {

/// What people should know of the pixels that the network of the file learnt from; empty where
/// `input`, what becomes of pixels here, is what its layers say, or where nothing tells.
std::string keras_caveat(const KerasLayers&, const Input& input);

}  // namespace cputrain::model
