#include "scaling/simulation/gpu/gpu_sums.h"

#include <algorithm>

namespace cputrain::simulation {
namespace {

/// Of a reduce-scatter and an all-gather over n.
double ring_seconds(int n, double hop, double bytes, double bytes_per_second) {
  const double steps = 2.0 * (n - 1);
  return steps * hop + steps / n * bytes / bytes_per_second;
}

}  // namespace

double sum_seconds(const Platform& platform, const GpuGroup& group, double bytes) {
  if (group.size() == 1) return 0;
  const GpuNode& node = *platform.gpus;
  double seconds = 1e-6 * node.sum_us +
                   ring_seconds(group.of_node, 1e-6 * node.hop_us, bytes, 1e9 * node.ring_gbs);
  if (group.nodes > 1) {
    const double network = 1e9 / 8 * platform.network_gbps * platform.network_efficiency;
    seconds += ring_seconds(group.nodes, 1e-6 * platform.network_latency_us, bytes, network);
  }
  return seconds;
}

double end_of_sums(const std::vector<GpuBucket>& buckets,
                   const std::function<double(double bytes)>& seconds) {
  double end = 0;
  for (const GpuBucket& bucket : buckets) {
    end = std::max(end, bucket.ready) + seconds(bucket.bytes);
  }
  return end;
}

}  // namespace cputrain::simulation
