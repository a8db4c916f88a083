#pragma once

#include <vector>

#include "model/graph.h"

namespace cputrain::model {

/// The nodes at which the graph may be cut into a beginning that gives the same numbers for an
/// image in every pass (nothing in it learns, and nothing is drawn at random) and a rest that reads
/// this node alone of it. In the order of the graph; the image is none of them.
std::vector<int> frozen_cuts(const Graph&);

/// The part of the multiply-adds of a forward pass that are those of nodes up to `node`.
double share_of_work(const Graph&, int node);

}  // namespace cputrain::model
