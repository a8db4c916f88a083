#pragma once

#include <functional>
#include <vector>

#include "scaling/simulation/platform.h"

namespace cputrain::simulation {

/// GPUs that sum gradients: so many of each of some nodes.
struct GpuGroup {
  int nodes = 1, of_node = 1;

  int size() const { return nodes * of_node; }
};

/// Seconds of the sum of so many bytes of every GPU, whose result all have, as NCCL does it with
/// rings over g GPUs of each of K nodes. In each node a reduce-scatter leaves a slice of its sum on
/// every GPU, rings between nodes sum slices over all network cards at the same time, and an
/// all-gather hands them round:
///
///   sum + 2 (g - 1) hop + 2 (g - 1)/g bytes/ring + 2 (K - 1) latency + 2 (K - 1)/K bytes/network
///
/// One GPU sums nothing and takes no time.
double sum_seconds(const Platform&, const GpuGroup&, double bytes);

/// A bucket of gradients: from when on it may be summed, in seconds from the step's beginning.
struct GpuBucket {
  double ready = 0, bytes = 0;
};

/// When the last bucket is summed: one after the other in a stream of their own, beside backward.
double end_of_sums(const std::vector<GpuBucket>&,
                   const std::function<double(double bytes)>& seconds);

}  // namespace cputrain::simulation
