#pragma once

#include "model/graph.h"

namespace cputrain {

/// Puts max pooling before the ReLU that it follows. Exact, since both commute (the maximum of the
/// window is kept either way, and where it is negative both give 0 and pass no gradient), and ReLU
/// then touches a fraction of the data while the convolution's output need not be kept. Names,
/// parameters and `origin` stay.
Graph pool_before_relu(const Graph&);

/// Sets the rate of every dropout layer.
Graph with_dropout(const Graph&, float rate);

}  // namespace cputrain
