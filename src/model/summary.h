#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/statistics/statistics.h"
#include "model/graph.h"

namespace cputrain::model {

/// Keras' summary table with what else matters: layer, output, parameters, MACs per image, bytes of
/// an image's float32 output; then the totals and the bytes that are reduced in every step.
std::string summary_text(const Graph&);

/// {"parameters", "macs_per_image", "layers": [{"name", "type", "output": [H, W, C], ...}]}
nlohmann::ordered_json summary_json(const Graph&);

/// Bytes that a layer must at least move between memory and the processor, in either direction, by
/// the images that are computed at once. By layer: source, destination and weights, once each;
/// backward moves their gradients instead, as many. An image has a byte a pixel and channel, all
/// else elements of `element_bytes`. A max pool (and a ReLU behind it) that alone reads a
/// convolution runs with it in the cache and moves nothing by itself: the convolution's destination
/// is then the pooled map. Zeros around a map are not read.
std::map<std::string, Line> least_bytes(const Graph&, std::size_t element_bytes);

/// Numbers of the maps that layers with weights read, of one image: each map once, without the
/// zeros around it, and without the image. A training step keeps them for the gradients of weights.
/// Where nothing stays in a cache, each is written and read forward, read for the weights'
/// gradients, and its own gradient is written and read.
double kept_numbers(const Graph&);

}  // namespace cputrain::model
