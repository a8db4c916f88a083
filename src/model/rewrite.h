#pragma once

#include <span>
#include <string>

#include "model/graph.h"

namespace cputrain {

/// Puts max pooling before the ReLU that it follows. Exact, since both commute (the maximum of the
/// window is kept either way, and where it is negative both give 0 and pass no gradient), and ReLU
/// then touches a fraction of the data while the convolution's output need not be kept. Names,
/// parameters and `origin` stay.
Graph pool_before_relu(const Graph&);

/// Sets the rate of every dropout layer.
Graph with_dropout(const Graph&, float rate);

/// Sets the smoothing of the loss.
Graph with_label_smoothing(const Graph&, float smoothing);

/// The named layers learn nothing: their parameters have no gradients, are not reduced over ranks
/// and keep their values.
Graph with_frozen(const Graph&, std::span<const std::string> layers);

}  // namespace cputrain
