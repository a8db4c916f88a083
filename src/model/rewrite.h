#pragma once

#include <span>
#include <string>

#include "model/graph.h"

namespace cputrain::model {

/// Puts max pooling before the ReLU that it follows. Exact, since both commute (the maximum of the
/// window is kept either way, and where it is negative both give 0 and pass no gradient), and ReLU
/// then touches a fraction of the data while the convolution's output need not be kept. Names,
/// parameters and `origin` stay.
Graph pool_before_relu(const Graph&);

/// Leaves every ReLU out, so that none of a map's numbers is zero: the worst case of kernels that
/// skip zeros. Computes something else than the graph does; names, parameters and `origin` of what
/// is left stay.
Graph without_relus(const Graph&);

/// Sets the rate of every dropout layer.
Graph with_dropout(const Graph&, float rate);

/// Makes other numbers of the pixels.
Graph with_input(const Graph&, const Input&);

/// Sets the smoothing of the loss.
Graph with_label_smoothing(const Graph&, float smoothing);

/// The named layers learn nothing: their parameters have no gradients, are not reduced over ranks
/// and keep their values.
Graph with_frozen(const Graph&, std::span<const std::string> layers);

/// Multiplies the learning rate of the named layers.
Graph with_rate(const Graph&, std::span<const std::string> layers, double rate);

/// The ranks of a node compute the named dense layers together, each a share of the inputs for the
/// images of all: the kernel's gradient is then made once per node and not once per rank, while
/// activations travel between the ranks. After "One weird trick for parallelizing convolutional
/// neural networks" (Krizhevsky 2014, arXiv 1404.5997). Exact up to the order of additions. Names,
/// parameters and their files stay.
Graph with_sharded_dense(const Graph&, std::span<const std::string> layers);
bool has_sharded_dense(const Graph&);

}  // namespace cputrain::model
